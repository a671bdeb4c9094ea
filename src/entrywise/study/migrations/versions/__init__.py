"""One file a version; a file that was released never changes."""
