#!/usr/bin/env python3
"""make_wheel.py TREE VERSION FOLDER: a Python wheel of an installed tree, with ds-opt and ds-run as commands. Same input, same bytes."""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TAG = "py3-none-manylinux_2_36_x86_64"  # scripts/package_needs.py checks that it is true
EPOCH = (1980, 1, 1, 0, 0, 0)


# What the package's parts need, by the extra that brings it. The programs alone need nothing.
EXTRAS = {"data": ("numpy", "safetensors", "pyarrow"),
          "export": ("numpy", "safetensors", "torch", "transformers", "tokenizers", "onnx", "onnxscript", "onnxruntime")}


def extras():
    """Lines of the metadata. Of each package the version that is tested, or a later one."""
    tested = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "models" / "requirements.txt").read_text(), re.MULTILINE))
    return "".join(f"Provides-Extra: {extra}\n" + "".join(f'Requires-Dist: {name}>={tested[name]}; extra == "{extra}"\n' for name in names)
                   for extra, names in EXTRAS.items())


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: deepstatic\nVersion: {version}\nSummary: a compiler and a runtime for training runs\n"
            f"Requires-Python: >=3.10\n{extras()}Description-Content-Type: text/markdown\n\n" + (ROOT / "README.md").read_text())


def contents(tree, version):
    """(name in the wheel, bytes, whether it is a program), without RECORD."""
    for path in sorted((ROOT / "python" / "deepstatic").glob("*.py")):
        yield f"deepstatic/{path.name}", path.read_bytes(), False
    yield "deepstatic/VERSION", f"{version}\n".encode(), False
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        yield f"deepstatic/{path.relative_to(tree).as_posix()}", path.read_bytes(), path.stat().st_mode & 0o100 != 0
    info = f"deepstatic-{version}.dist-info"
    yield f"{info}/METADATA", metadata(version).encode(), False
    yield f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(), False
    yield f"{info}/entry_points.txt", b"[console_scripts]\nds-opt = deepstatic:ds_opt\nds-run = deepstatic:ds_run\n", False


def main():
    tree, version, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    record = []

    def add(name, data, program):
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.external_attr = (0o100755 if program else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(entry, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")

    with zipfile.ZipFile(folder / f"deepstatic-{version}-{TAG}.whl", "w") as wheel:
        for entry in contents(tree, version):
            add(*entry)
        name = f"deepstatic-{version}.dist-info/RECORD"
        add(name, "".join(f"{line}\n" for line in [*record, f"{name},,"]).encode(), False)


if __name__ == "__main__":
    main()
