"""Every figure and table of the papers, as a command."""
