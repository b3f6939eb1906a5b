#!/usr/bin/env python3
"""How fast a rank's file (`runtime/nvme`) is written and read beside fio, with the same block size and depth, in interleaved rounds.

Both read and write in order, past the page cache, with io_uring, over bytes that were written before. Every round runs each of them
once with memory in huge pages and once in small ones; a ratio is that of one round. NvmeFile uses the memory of a call again and
again, as fio does its own. Needs fio (apt-get install fio).
"""

import argparse
import functools
import json
import shutil
import statistics
import sys
from pathlib import Path

import rounds

MIB = 1 << 20
PAGES = ("huge", "small")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=rounds.ROOT / "build" / "bench" / "nvme", help="on the disk that is measured (%(default)s)")
    parser.add_argument("--mib", type=int, default=2048, help="of the file")
    parser.add_argument("--call-mib", type=int, default=16, help="that one call of NvmeFile reads or writes (%(default)s)")
    parser.add_argument("--block-kib", type=int, default=1024, help="of one submission (%(default)s)")
    parser.add_argument("--depth", type=int, default=8, help="submissions under way (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--checksums", action="store_true", help="NvmeFile takes checksums and compares them; fio does not")
    rounds.add_timeout(parser)
    return parser.parse_args()


def nvme_file(args, pages):
    """Bytes per second: {"first_write", "write", "read", "note"}."""
    command = [rounds.BIN / "nvme-speed", args.folder, args.mib * MIB, args.block_kib * 1024, args.depth, args.call_mib * MIB]
    command += ["huge"] * (pages == "huge") + ["checksums"] * args.checksums
    return json.loads(rounds.run([command], args.timeout).require().outputs[0])


def fio(args, pages):
    """{"write", "read"}. The file is kept: it is laid out before the first round."""
    environment = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if pages == "huge" else {}
    speeds = {}
    for way in ("write", "read"):
        command = ["fio", "--name=nvme", f"--filename={args.folder / 'fio'}", f"--rw={way}", f"--size={args.mib}m", f"--bs={args.block_kib}k",
                   f"--iodepth={args.depth}", "--ioengine=io_uring", "--direct=1", "--overwrite=1", "--scramble_buffers=0", "--output-format=json"]
        done = rounds.run([command], args.timeout, environments=[environment]).require()
        speeds[way] = json.loads(done.outputs[0])["jobs"][0][way]["bw_bytes"]
    return speeds


def report(results):
    print(results["NvmeFile, huge pages"][0]["note"])
    print(f"\n| | NvmeFile GB/s, median (best) | fio | ratio of the bests | median of the rounds' ratios |\n{'|---' * 5}|")
    for pages in PAGES:
        ours, others = (results[f"{name}, {pages} pages"] for name in ("NvmeFile", "fio"))
        for way in ("write", "read"):
            mine, fios = [result[way] for result in ours], [result[way] for result in others]
            ratio = statistics.median(a / b for a, b in zip(mine, fios))
            print(f"| {way}, {pages} pages | {gigabytes(mine)} | {gigabytes(fios)} | {max(mine) / max(fios):.2f} | {ratio:.2f} |")
        print(f"| first write, {pages} pages | {gigabytes([result['first_write'] for result in ours])} | | | |")


def gigabytes(speeds):
    return f"{statistics.median(speeds) / 1e9:.2f} ({max(speeds) / 1e9:.2f})"


def main():
    args = parse()
    if not shutil.which("fio"):
        sys.exit("error: fio is not installed; apt-get install fio")
    rounds.require_tools("nvme-speed")
    args.folder.mkdir(parents=True, exist_ok=True)
    try:
        fio(args, "small")  # lays its file out
        contenders = {f"{name}, {pages} pages": functools.partial(run, args, pages)
                      for pages in PAGES for name, run in (("NvmeFile", nvme_file), ("fio", fio))}
        results, failures = rounds.interleave(contenders, args.rounds)
    finally:
        (args.folder / "fio").unlink(missing_ok=True)
    if failures:
        sys.exit("error: " + "; ".join(f"{name} {why}" for name, why in failures.items()))
    report(results)


if __name__ == "__main__":
    main()
