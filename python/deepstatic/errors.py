"""What is raised when a program refuses or fails."""


class DeepStaticError(Exception):
    """The program's own sentence. `try_line` is the line to paste that would work, where there is one, `code` the exit code. A traceback shows
    both."""

    def __init__(self, sentence: str, try_line: str = "", code: int = 1):
        super().__init__(sentence)
        self.sentence = sentence
        self.try_line = try_line
        self.code = code

    def __str__(self):
        return f"{self.sentence}\n  try: {self.try_line}" if self.try_line else self.sentence


def need(module: str, why: str):
    """Imports a module that the package does not bring."""
    import importlib
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DeepStaticError(f"{why} needs the Python package {module.split('.')[0]}, which is not installed here",
                              f"pip install {module.split('.')[0]}") from error
