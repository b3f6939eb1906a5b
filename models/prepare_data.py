#!/usr/bin/env python3
"""Makes training data that ds-run reads: samples as safetensors, or one stream of tokens. See README.md."""

import argparse
import os
import sys
from pathlib import Path
from typing import Callable, NamedTuple

import numpy

from exporting import Refusal, first_line
from exporting.arguments import Parser, positive

# Suffix -> element type of a token stream, little-endian. The longer suffix is looked for first.
STREAMS = {".u32.bin": numpy.dtype("<u4"), ".bin": numpy.dtype("<u2")}


def main(arguments=None) -> int:
    args = parse(arguments)
    try:
        {"text": prepare_text, "masked": prepare_masked, "images": prepare_images}[args.command](args)
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 1
    return 0


def prepare_text(args) -> None:
    """Files -> tokens, in order and without separators -> args.out; leaves nothing behind when it raises Refusal."""
    if args.pack:
        return prepare_packed(args)
    tokens = tokenize(args.files, load_tokenizer(args.tokenizer))
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


def prepare_packed(args) -> None:
    """Documents -> samples that hold several of them, for a model exported with --packed -> args.out."""
    if args.out.suffix != ".safetensors":
        raise Refusal(f"--out {args.out}: packed samples have more than tokens; end it in .safetensors")
    tokenizer = load_tokenizer(args.tokenizer)
    documents = [encode(text, path, tokenizer) for path in args.files for text in split(read(path), args.separator)]
    pieces = [document[at:at + args.seq] for document in documents for at in range(0, len(document), args.seq)]
    if not pieces:
        raise Refusal("the files hold no token")
    rows = pack(pieces, args.seq)
    import safetensors.numpy
    write_whole(args.out, safetensors.numpy.save(lay_out(rows, args.seq)))
    print(f"{args.out}: {len(pieces):,} documents, none longer than a sample, in {len(rows):,} samples of {args.seq} tokens as input_ids, "
          f"position_ids, segment_ids and labels; {sum(map(len, pieces)) / (len(rows) * args.seq):.1%} of the places hold tokens")


def split(content: bytes, separator: str | None) -> list:
    """A file is one document, or the parts between separators."""
    return content.split(separator.encode()) if separator else [content]


def pack(pieces, length: int) -> list:
    """Rows of pieces, each row of at most `length` tokens: the longest first, each into the fullest row that has room."""
    rows, with_room = [], [[] for _ in range(length + 1)]  # with_room[n]: rows with n places left
    for piece in sorted(pieces, key=len, reverse=True):
        room = next((n for n in range(len(piece), length + 1) if with_room[n]), None)
        if room is None:
            room, row = length, []
            rows.append(row)
        else:
            row = with_room[room].pop()
        row.append(piece)
        with_room[room - len(piece)].append(row)
    return rows


def lay_out(rows, length: int) -> dict:
    """One sample a row. Positions begin anew with each document; segment 0 is padding. A document's first token is no target: what stands
    before it is another's."""
    shape = (len(rows), length)
    made = {name: numpy.zeros(shape, numpy.int64) for name in ("input_ids", "position_ids", "segment_ids")}
    made["labels"] = numpy.full(shape, -100)
    for i, row in enumerate(rows):
        at = 0
        for number, piece in enumerate(row, 1):
            end = at + len(piece)
            made["input_ids"][i, at:end] = piece
            made["position_ids"][i, at:end] = numpy.arange(len(piece))
            made["segment_ids"][i, at:end] = number
            made["labels"][i, at + 1:end] = piece[1:]
            at = end
    return made


def prepare_masked(args) -> None:
    """The same, cut into samples of which some tokens are to be guessed -> args.out."""
    if args.out.suffix != ".safetensors":
        raise Refusal(f"--out {args.out}: unknown kind; end it in .safetensors")
    tokenizer = load_tokenizer(args.tokenizer)
    mask = tokenizer.mask if args.mask_token is None else args.mask_token
    if mask is None:
        raise Refusal(f"--tokenizer {args.tokenizer} has no mask token; give its id with --mask-token")
    if not 0 <= mask < tokenizer.size:
        raise Refusal(f"--mask-token {mask} is not among the tokenizer's ids, 0 to {tokenizer.size - 1}")
    samples, rest = cut(tokenize(args.files, tokenizer), args.seq)
    if (samples == mask).any():
        raise Refusal(f"the text holds token {mask}, which is to stand for a masked one; give another id with --mask-token")
    shown, labels = hide(samples, mask, tokenizer.size, args.share, numpy.random.default_rng(args.seed))
    import safetensors.numpy
    write_whole(args.out, safetensors.numpy.save({"input_ids": shown, "attention_mask": numpy.ones_like(shown), "labels": labels}))
    print(f"{args.out}: {len(samples):,} samples of {args.seq} tokens as input_ids, attention_mask and labels; "
          f"{(labels >= 0).mean():.1%} to be guessed; {rest} tokens left over")


def hide(samples, mask: int, size: int, share: float, generator):
    """(what the model sees, labels: -100 where nothing is to be guessed), as BERT's paper draws them (Devlin et al. 2019): of the
    chosen tokens 80 % become the mask, 10 % any token, 10 % stay. At least one token of a sample is chosen."""
    draws = generator.random(samples.shape)
    chosen = (draws < share) | (draws == draws.min(axis=1, keepdims=True))
    fate = generator.random(samples.shape)
    other = generator.integers(size, size=samples.shape)
    shown = numpy.where(chosen & (fate < 0.8), mask, numpy.where(chosen & (fate >= 0.9), other, samples))
    return shown, numpy.where(chosen, samples, -100)


class Tokenizer(NamedTuple):
    encode: Callable | None  # text -> token ids, special tokens left out; None: every byte is a token
    size: int                # ids are below it
    mask: int | None         # id of the mask token


def tokenize(files, tokenizer: Tokenizer) -> numpy.ndarray:
    """Token ids of all files, int64 [tokens]."""
    return numpy.concatenate([encode(read(path), path, tokenizer) for path in files])


def encode(content: bytes, path: Path, tokenizer: Tokenizer) -> numpy.ndarray:
    """Token ids of (a part of) a file."""
    if tokenizer.encode is None:
        return numpy.frombuffer(content, numpy.uint8).astype(numpy.int64)
    try:
        return numpy.array(tokenizer.encode(content.decode("utf-8")), numpy.int64)
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} is not UTF-8 at byte {error.start}; convert it, or use --tokenizer bytes") from error


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}") from error


def load_tokenizer(path: str) -> Tokenizer:
    """`path` is "bytes", whose byte 0 no text holds, or a local folder or tokenizer.json."""
    if path == "bytes":
        return Tokenizer(None, 256, 0)
    if os.path.isfile(path):
        import tokenizers
        try:
            model = tokenizers.Tokenizer.from_file(path)
        except Exception as error:
            raise Refusal(f"--tokenizer {path}: {first_line(error)}") from error
        masks = [model.token_to_id(name) for name in ("[MASK]", "<mask>")]
        return Tokenizer(lambda text: model.encode(text, add_special_tokens=False).ids, 1 + max(model.get_vocab().values(), default=-1),
                         next((mask for mask in masks if mask is not None), None))
    if not os.path.isdir(path):
        raise Refusal(f"--tokenizer {path} does not exist; give bytes, a tokenizer.json or a saved tokenizer's folder")
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    transformers.logging.set_verbosity_error()  # a stream is longer than the model's context, and may be
    try:
        model = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    except Exception as error:
        raise Refusal(f"--tokenizer {path}: {first_line(error)}") from error
    return Tokenizer(lambda text: model(text, add_special_tokens=False)["input_ids"], 1 + max(model.get_vocab().values(), default=-1),
                     model.mask_token_id)


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


def prepare_images(args) -> None:
    """Arrays of the user's, or images drawn from --seed -> args.out."""
    if (args.images is None) != (args.labels is None):
        raise Refusal("give both --images X.npy and --labels Y.npy, or neither")
    if args.out.suffix != ".safetensors":
        raise Refusal(f"--out {args.out}: unknown kind; end it in .safetensors")
    images, labels = draw_images(args) if args.images is None else read_images(args.images, args.labels)
    import safetensors.numpy
    write_whole(args.out, safetensors.numpy.save({"pixel_values": images, "labels": labels}))
    shape = " x ".join(map(str, images.shape[1:]))
    print(f"{args.out}: {len(images):,} images of {shape} as pixel_values, and labels 0 to {labels.max()}")


def draw_images(args):
    """A coarse pattern per class, and noise over every pixel: flat images would have ties in max pooling."""
    generator = numpy.random.default_rng(args.seed)
    labels = generator.integers(args.classes, size=args.count)
    cells = min(4, args.size)
    patterns = generator.standard_normal((args.classes, 3, cells, cells)).astype(numpy.float32)
    places = numpy.arange(args.size) * cells // args.size
    images = patterns[labels][:, :, places][:, :, :, places]
    images += 0.5 * generator.standard_normal(images.shape, dtype=numpy.float32)
    return images, labels.astype(numpy.int64)


def read_images(images: Path, labels: Path):
    """uint8 [n, height, width, 3], scaled to -1 ... 1, or float32 [n, 3, height, width] as they are; integers [n]."""
    pixels, classes = load_array(images), load_array(labels)
    if pixels.dtype == numpy.uint8 and pixels.ndim == 4 and pixels.shape[3] == 3:
        pixels = (pixels.transpose(0, 3, 1, 2) / numpy.float32(127.5) - 1).astype(numpy.float32)
    if pixels.dtype != numpy.float32 or pixels.ndim != 4 or pixels.shape[1] != 3:
        raise Refusal(f"{images} holds {pixels.dtype} {list(pixels.shape)}; images are uint8 [n, height, width, 3] or "
                      "float32 [n, 3, height, width]")
    if classes.dtype.kind not in "iu" or classes.shape != pixels.shape[:1] or len(classes) == 0:
        raise Refusal(f"{labels} holds {classes.dtype} {list(classes.shape)}; labels are integers [{len(pixels)}], one an image")
    return numpy.ascontiguousarray(pixels), classes.astype(numpy.int64)


def load_array(path: Path) -> numpy.ndarray:
    try:
        return numpy.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} is no array written by numpy.save: {first_line(error)}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Writes beside and renames: the file is there in full or as it was."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"--out {path}: {error.strerror}") from error


def share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


def parse(arguments) -> argparse.Namespace:
    parser = Parser(prog="prepare_data.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="text|masked|images")
    text = commands.add_parser("text", help="text files to token ids")
    masked = commands.add_parser("masked", help="text files to samples some of whose tokens are to be guessed, as BERT is trained")
    for command in (text, masked):
        command.add_argument("files", nargs="+", type=Path, metavar="FILE")
        command.add_argument("--tokenizer", default="bytes",
                             help="bytes (ids 0 to 255, the default), a tokenizer.json, or a saved tokenizer's folder")
        command.add_argument("--seq", type=positive, default=128, help="tokens a sample (default 128)")
    text.add_argument("--out", type=Path, required=True, help="F.safetensors: input_ids and labels, int64 [samples, seq]; "
                      "F.bin or F.u32.bin: a stream of 16-bit or 32-bit ids")
    text.add_argument("--pack", action="store_true", help="several documents a sample, for a model exported with --packed: input_ids, "
                      "position_ids, segment_ids and labels; a FILE is a document")
    text.add_argument("--separator", metavar="TEXT", help="with --pack: what stands between the documents of a FILE")
    masked.add_argument("--share", type=share, default=0.15, help="of the tokens that are to be guessed (default 0.15)")
    masked.add_argument("--mask-token", type=int, metavar="ID", help="what is seen in place of a masked token (default: the "
                        "tokenizer's own; of bytes 0)")
    masked.add_argument("--seed", type=int, default=0, help="of what is masked (default 0)")
    masked.add_argument("--out", type=Path, required=True, help="F.safetensors: input_ids, attention_mask and labels, int64 "
                        "[samples, seq]; labels are -100 where nothing is to be guessed")
    images = commands.add_parser("images", help="arrays of images, or drawn ones, to pixel_values and labels")
    images.add_argument("--images", type=Path, metavar="X.npy", help="uint8 [n, height, width, 3] or float32 [n, 3, height, "
                        "width]; without it, images are drawn from --seed")
    images.add_argument("--labels", type=Path, metavar="Y.npy", help="integers [n]")
    images.add_argument("--count", type=positive, default=1000, help="of drawn images (default 1000)")
    images.add_argument("--size", type=positive, default=224, help="of drawn images, in pixels (default 224)")
    images.add_argument("--classes", type=positive, default=10, help="of drawn images (default 10)")
    images.add_argument("--seed", type=int, default=0, help="of drawn images (default 0)")
    images.add_argument("--out", type=Path, required=True, help="F.safetensors: pixel_values float32 [n, 3, height, width] "
                        "and labels int64 [n]")
    args = parser.parse_args(arguments)
    if args.command == "text" and args.separator and not args.pack:
        parser.error("--separator has no meaning without --pack")
    return args


if __name__ == "__main__":
    sys.exit(main())
