"""The service, the page, and the report of a study in one file."""
