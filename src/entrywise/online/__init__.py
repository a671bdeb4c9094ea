"""Nature chooses the entries: learners that predict, then learn."""

__all__: list[str] = []
