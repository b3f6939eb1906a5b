#!/usr/bin/env python3
"""simulated_sources.py SOURCES TARGET FILE...: copies the runtime's files with the primitives of Primitives.h in place of
the standard library's, with the places where faults happen, and with the planted bugs of edits.py.

The product's own files stay as they are. Whatever no longer fits is an error that names what to mend.
"""

import re
import sys
from pathlib import Path

from edits import HOOKS, PLANTED

PREFIX = "".join(f'#include "test/simulation/{name}.h"\n' for name in ("Faults", "Network", "Primitives"))
HEADERS = ["atomic", "condition_variable", "mutex", "pthread.h", "thread"]
NAMES = {
    "std::atomic<": "ds::sim::atomic<",
    "std::mutex": "ds::sim::mutex",
    "std::condition_variable": "ds::sim::condition_variable",
    "std::thread": "ds::sim::thread",
    "std::this_thread": "ds::sim::this_thread",
    "std::memory_order_": "ds::sim::memory_order_",
    "std::chrono::steady_clock": "ds::sim::steady_clock",
    "::pthread_setname_np": "ds::sim::pthread_setname_np",
}
# The system calls of sockets (Network.h), in runtime/comm/tcp alone.
CALLS = re.compile(r"(?<![\w>:])::(socket|[gs]etsockopt|bind|listen|connect|accept4|recv|send|shutdown|close|poll|getrandom)\(")
# What would be a real thread, wait or clock in the simulation.
UNKNOWN = re.compile(r"std::(atomic|(timed_|recursive_|shared_)\w*mutex|condition_variable|j?thread\b|future|promise|async|call_once|"
                     r"latch|barrier|\w+_semaphore|stop_\w+|chrono::\w+_clock)|\bpthread_(?!setname_np)|\b(nano|u)?sleep\(|\bfutex")


def edits():
    for edit in HOOKS:
        yield "hook", edit
    for bug, (_, changes) in PLANTED.items():
        for change in changes:
            yield bug, change(f'ds::sim::planted("{bug}")')


def edited(texts):
    for name, (file, old, new) in edits():
        if texts[file].count(old) != 1:
            sys.exit(f"edits.py, {name}: {file} has this text {texts[file].count(old)} times, not once; write the edit anew:\n{old}")
        texts[file] = texts[file].replace(old, new)
    return texts


def simulated(file, text):
    for header in HEADERS:
        text = text.replace(f"#include <{header}>\n", '#include "test/simulation/Primitives.h"\n')
    for old, new in NAMES.items():
        text = text.replace(old, new)
    if file.startswith("runtime/comm/tcp/"):
        text = CALLS.sub(r"ds::sim::\1(", text)
    for number, line in enumerate(text.splitlines(), 1):
        found = UNKNOWN.search(line.split("//")[0])
        if found:
            sys.exit(f"{file}: {found.group(0)} has no counterpart in Primitives.h; add one and its name to simulated_sources.py")
    return text


def write(path, text):
    """Only what has changed, so that little is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    sources, target = Path(sys.argv[1]), Path(sys.argv[2])
    for file, text in edited({file: (sources / file).read_text() for file in sys.argv[3:]}).items():
        write(target / file, simulated(file, PREFIX + text))
    bugs = "".join(f'{{"{bug}", "{meaning}"}},\n' for bug, (meaning, _) in PLANTED.items())
    write(target / "PlantedBugs.inc", "// Name and meaning of each of edits.py.\n" + bugs)


if __name__ == "__main__":
    main()
