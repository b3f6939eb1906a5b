#!/usr/bin/env python3
"""Makes training data that ds-run reads: samples as safetensors, or one stream of tokens. See README.md."""

import argparse
import os
import sys
from pathlib import Path

import numpy

from exporting import Refusal, first_line
from exporting.arguments import Parser, positive

# Suffix -> element type of a token stream, little-endian. The longer suffix is looked for first.
STREAMS = {".u32.bin": numpy.dtype("<u4"), ".bin": numpy.dtype("<u2")}


def main(arguments=None) -> int:
    args = parse(arguments)
    try:
        if args.command == "images":
            raise Refusal("images come with a later release; this one prepares text")
        prepare_text(args)
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 1
    return 0


def prepare_text(args) -> None:
    """Files -> tokens, in order and without separators -> args.out; leaves nothing behind when it raises Refusal."""
    tokens = tokenize(args.files, args.tokenizer)
    stream = next((kind for suffix, kind in STREAMS.items() if args.out.name.endswith(suffix)), None)
    if stream is not None:
        write_whole(args.out, stream_bytes(tokens, stream))
        print(f"{args.out}: {len(tokens):,} tokens, {stream.itemsize} bytes each")
    elif args.out.suffix == ".safetensors":
        samples, rest = cut(tokens, args.seq)
        write_whole(args.out, sample_bytes(samples))
        print(f"{args.out}: {len(samples):,} samples of {args.seq} tokens as input_ids and labels; {rest} tokens left over")
    else:
        raise Refusal(f"--out {args.out}: unknown kind; end it in .safetensors, {' or '.join(STREAMS)}")


def tokenize(files, tokenizer: str) -> numpy.ndarray:
    """Token ids of all files, int64 [tokens]; `tokenizer` is "bytes" or a local folder or tokenizer.json."""
    if tokenizer == "bytes":
        return numpy.frombuffer(b"".join(read(path) for path in files), numpy.uint8).astype(numpy.int64)
    encode = load_tokenizer(tokenizer)
    ids = []
    for path in files:
        try:
            text = read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refusal(f"{path} is not UTF-8 at byte {error.start}; convert it, or use --tokenizer bytes") from error
        ids.extend(encode(text))
    return numpy.array(ids, numpy.int64)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}") from error


def load_tokenizer(path: str):
    """A function text -> token ids, special tokens left out."""
    if os.path.isfile(path):
        import tokenizers
        try:
            return lambda text, model=tokenizers.Tokenizer.from_file(path): model.encode(text, add_special_tokens=False).ids
        except Exception as error:
            raise Refusal(f"--tokenizer {path}: {first_line(error)}") from error
    if not os.path.isdir(path):
        raise Refusal(f"--tokenizer {path} does not exist; give bytes, a tokenizer.json or a saved tokenizer's folder")
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    transformers.logging.set_verbosity_error()  # a stream is longer than the model's context, and may be
    try:
        model = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    except Exception as error:
        raise Refusal(f"--tokenizer {path}: {first_line(error)}") from error
    return lambda text: model(text, add_special_tokens=False)["input_ids"]


def cut(tokens, length: int):
    """(samples [n, length], number of tokens that fill no sample); refuses fewer than one sample."""
    count = len(tokens) // length
    if count == 0:
        raise Refusal(f"{len(tokens)} tokens do not fill one sample of --seq {length}; give more text or --seq {max(len(tokens), 1)}")
    return tokens[:count * length].reshape(count, length), len(tokens) - count * length


def sample_bytes(samples) -> bytes:
    """A safetensors file with one tensor per graph input of the exported language models."""
    import safetensors.numpy
    # The models shift their labels themselves (metadata deepstatic.tokens), so both are the same tokens.
    return safetensors.numpy.save({"input_ids": samples, "labels": samples})


def stream_bytes(tokens, kind: numpy.dtype) -> bytes:
    """The tokens as `kind`; refuses ids that it cannot hold."""
    if len(tokens) == 0:
        raise Refusal("the files hold no token")
    if tokens.max() > numpy.iinfo(kind).max:
        raise Refusal(f"token id {tokens.max()} does not fit {8 * kind.itemsize} bits; end --out in .u32.bin")
    return tokens.astype(kind).tobytes()


def write_whole(path: Path, content: bytes) -> None:
    """Writes beside and renames: the file is there in full or as it was."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"--out {path}: {error.strerror}") from error


def parse(arguments) -> argparse.Namespace:
    parser = Parser(prog="prepare_data.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="text|images")
    text = commands.add_parser("text", help="text files to token ids")
    text.add_argument("files", nargs="+", type=Path, metavar="FILE")
    text.add_argument("--tokenizer", default="bytes",
                      help="bytes (ids 0 to 255, the default), a tokenizer.json, or a saved tokenizer's folder")
    text.add_argument("--seq", type=positive, default=128, help="tokens a sample (default 128)")
    text.add_argument("--out", type=Path, required=True, help="F.safetensors: input_ids and labels, int64 [samples, seq]; "
                      "F.bin or F.u32.bin: a stream of 16-bit or 32-bit ids")
    commands.add_parser("images", help="comes with a later release")
    args, unknown = parser.parse_known_args(arguments)
    if unknown and args.command == "text":
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


if __name__ == "__main__":
    sys.exit(main())
