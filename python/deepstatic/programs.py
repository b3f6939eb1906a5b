"""The programs that do the work: where they are, how they are called, what they say."""

import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from .errors import DeepStaticError

FOLDER = Path(__file__).resolve().parent
STOPPED = 75  # exit code: ended as asked, and everything is saved


def ds_opt():
    """The command `ds-opt` of the wheel."""
    _become("ds-opt")


def ds_run():
    """The command `ds-run` of the wheel."""
    _become("ds-run")


def run_script(name: str, needs: tuple) -> None:
    """models/NAME.py of the package as this program, with the arguments of the command line."""
    missing = [module for module in needs if importlib.util.find_spec(module) is None]
    if missing:
        sys.exit(f"error: deepstatic.{name} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed here\n"
                 f"try: pip install {' '.join(missing)}")
    sys.path.insert(0, str(exporter()))
    sys.exit(importlib.import_module(name).main())


def version() -> str:
    """Of the wheel; in a checkout of the sources, of those."""
    stated, sources = FOLDER / "VERSION", FOLDER.parents[1] / "CMakeLists.txt"
    if stated.exists():
        return stated.read_text().strip()
    return re.search(r"project\(DeepStatic VERSION ([0-9.]+)", sources.read_text())[1] if sources.exists() else "unknown"


def _become(program):
    path = find(program)
    os.execv(path, [path, *sys.argv[1:]])


def find(program: str) -> str:
    """The one that came with this package; in a checkout of the sources, the one on the PATH or that `make build` made."""
    built = FOLDER.parents[1] / "build" / "release" / "bin" / program
    for path in (FOLDER / "bin" / program, shutil.which(program), built):
        if path and os.path.exists(path):
            return str(path)
    raise DeepStaticError(f"{program} is neither in the package deepstatic nor on the PATH", "make build")


def exporter() -> Path:
    """The folder of export.py."""
    return next(path for path in (FOLDER / "share" / "deepstatic" / "models", FOLDER.parents[1] / "models") if path.is_dir())


class Output:
    """What a program wrote to stderr, line by line; `show` passes on what is progress or a note."""

    def __init__(self, stream, show: bool, lives: int):
        self.lines = []
        self._lives = lives  # a descriptor that tells the program that we are there, until it ends
        self._stream = stream
        self._show = show
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._stream:
            self.lines.append(line.rstrip("\n"))
            if self._show and not line.startswith(("error: ", "try: ", "  also: ")):
                print(line, end="", file=sys.stderr, flush=True)
        os.close(self._lives)

    def error(self, code: int) -> DeepStaticError:
        """The sentence that the program ended with."""
        self._thread.join()
        said = [line for line in self.lines if line.startswith("error: ")]
        tries = [line.removeprefix("try: ") for line in self.lines if line.startswith("try: ")]
        also = [line.strip() for line in self.lines if line.startswith("  also: ")]
        sentence = said[-1].removeprefix("error: ") if said else f"the program ended with code {code} and said nothing"
        return DeepStaticError("\n  ".join([sentence, *also]), tries[-1] if tries else "", code)


def start(program: str, *arguments, show=False, **streams) -> tuple:
    """(process, its Output). In a session of its own: an interrupt reaches it by us alone, and once. It does not outlive us: it reads from a
    pipe whose other end closes with this process, however that ends, and then gets SIGTERM, by which ds-run ends after the step under way."""
    told, held = os.pipe()
    try:
        process = subprocess.Popen([find(program), *map(str, arguments)], text=True, stderr=subprocess.PIPE, start_new_session=True,
                                   pass_fds=(told,), **streams)
        fcntl.fcntl(told, fcntl.F_SETOWN, process.pid)
        fcntl.fcntl(told, fcntl.F_SETSIG, signal.SIGTERM)
        fcntl.fcntl(told, fcntl.F_SETFL, fcntl.fcntl(told, fcntl.F_GETFL) | os.O_ASYNC)
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(told)
    output = Output(process.stderr, show, held)
    return process, output


def run(program: str, *arguments, show=False, good=(0,)) -> tuple:
    """(exit code, stdout) of a program; raises DeepStaticError with its sentence for any code that is not good. An interrupt asks it to
    end, which takes as long as the step under way; a second one ends it at once."""
    process, output = start(program, *arguments, show=show, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        text = process.stdout.read()
        code = process.wait()
    except BaseException:  # KeyboardInterrupt, or what a signal's handler raises
        process.send_signal(signal.SIGINT)
        try:
            process.wait()
        except BaseException:
            process.kill()
        raise
    if code not in good:
        raise output.error(code)
    return code, text
