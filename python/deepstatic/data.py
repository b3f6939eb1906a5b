"""What users call data -> files that ds-run reads."""

import json
from pathlib import Path

from .errors import DeepStaticError, need


def files_of(data, folder: Path) -> list:
    """Names of files; what is no file yet is written into `folder`."""
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, Path)) for path in data):
        return [file for path in data for file in files_of(path, folder)]
    if isinstance(data, (str, Path)) and not _is_table(Path(data)):
        return [str(data)]
    path = folder / f"data{sum(1 for _ in folder.iterdir())}.safetensors"  # a list of tables gives several
    write(columns_of(data), path)
    return [str(path)]


def columns_of(data) -> dict:
    """{input: array} of a folder of arrow or parquet files, a dataset or table, a dict of arrays, or a list of samples."""
    if isinstance(data, (str, Path)):
        path = Path(data)
        if not _is_table(path):
            raise DeepStaticError(f"{data} is no arrow or parquet file and no folder of them; plan.run reads files of other kinds")
        return _of_table(_read_folder(path) if path.is_dir() else _read_table(need("pyarrow", f"reading {path}"), path), data)
    if hasattr(data, "with_format"):  # of the package datasets
        return _of_table(data.with_format("arrow")[:], "the dataset")
    if hasattr(data, "to_pydict"):  # pyarrow.Table
        return _of_table(data, "the table")
    if isinstance(data, dict) and data:
        return {name: _array(values, name) for name, values in data.items()}
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and len(data) and isinstance(data[0], dict):
        return {name: _array([_array(row[name], name) for row in _rows(data)], name) for name in data[0]}
    if hasattr(data, "__len__") and len(data) == 0:
        raise DeepStaticError("the data has no sample")
    raise DeepStaticError(f"data is {{input: array}}, a file, a folder of arrow or parquet files, a dataset or a list of samples, not {type(data).__name__}")


def _is_table(path: Path) -> bool:
    return path.is_dir() or path.suffix in (".arrow", ".parquet")


def write(columns: dict, path: Path) -> None:
    numpy = _numpy()
    try:
        from safetensors.numpy import save_file
        save_file({name: numpy.ascontiguousarray(values) for name, values in columns.items()}, path)
    except ImportError:
        need("safetensors", "giving data as arrays")


def read(path: Path) -> dict:
    """{name: array} of a safetensors file."""
    return need("safetensors.numpy", "reading weights").load_file(path)


def _numpy():
    return need("numpy", "giving data as arrays")


def _rows(data) -> list:
    """Of a list of samples: dicts with the same names."""
    rows = [data[i] for i in range(len(data))]
    for i, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            raise DeepStaticError(f"sample {i} has {', '.join(row)}, and sample 0 has {', '.join(rows[0])}; all samples have the same columns")
    return rows


def _array(values, name: str):
    """Of a torch tensor or anything that numpy takes: numbers, and rows of one length."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        array = _numpy().asarray(values)
    except ValueError:
        array = None
    if array is None or array.dtype.kind == "O":
        lengths = sorted({len(row) for row in values if hasattr(row, "__len__")}) if hasattr(values, "__len__") else []
        ragged = f"rows of {lengths[0]} and of {lengths[-1]} values; a plan has one length, so pad or cut them" if len(lengths) > 1 else "what is no number"
        raise DeepStaticError(f"column {name} has {ragged}")
    if array.dtype.kind not in "biuf":
        raise DeepStaticError(f"column {name} has {array.dtype.name.rstrip('0123456789')} values, and a plan reads numbers; leave it out")
    return array


def _read_folder(folder: Path):
    """The table in a folder that `Dataset.save_to_disk` wrote, or of its parquet files in the order of their names."""
    arrow = need("pyarrow", f"reading {folder}")
    if (folder / "dataset_dict.json").exists():
        splits = json.loads((folder / "dataset_dict.json").read_text())["splits"]
        raise DeepStaticError(f"{folder} holds the splits {', '.join(splits)}; give one of them: {folder / splits[0]}")
    state = folder / "state.json"
    if state.exists():
        names = [entry["filename"] for entry in json.loads(state.read_text())["_data_files"]]
    else:
        names = sorted(path.name for path in folder.iterdir() if path.suffix in (".arrow", ".parquet"))
    if not names:
        raise DeepStaticError(f"{folder} holds no .arrow and no .parquet file")
    return arrow.concat_tables([_read_table(arrow, folder / name) for name in names])


def _read_table(arrow, path: Path):
    try:
        if path.suffix == ".parquet":
            return need("pyarrow.parquet", f"reading {path}").read_table(path)
        with arrow.memory_map(str(path)) as file:  # datasets writes streams, others files
            try:
                return arrow.ipc.open_stream(file).read_all()
            except arrow.ArrowInvalid:
                return arrow.ipc.open_file(file).read_all()
    except (arrow.ArrowInvalid, OSError) as error:
        raise DeepStaticError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _of_table(table, place) -> dict:
    """The columns of numbers; text and the like are what no plan reads."""
    columns = {}
    for name in table.column_names:
        values = _of_column(table.column(name).combine_chunks(), f"{place}: column {name}")
        if values is not None:
            columns[name] = values
    return columns


def _of_column(column, place):
    """[rows, ...] of a column of numbers, or of lists of equal lengths of them; None of anything else."""
    arrow = need("pyarrow", "reading a table")
    if hasattr(column, "chunks"):
        column = arrow.concat_arrays(column.chunks) if column.num_chunks else arrow.array([], column.type)
    shape, kind = [len(column)], column.type
    while arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind):
        if column.null_count:
            raise DeepStaticError(f"{place} has rows without a value")
        lengths = set(arrow.compute.list_value_length(column).to_pylist()) if len(column) else {0}
        if len(lengths) > 1:
            raise DeepStaticError(f"{place} has rows of {min(lengths)} and of {max(lengths)} values; a plan has one length, so pad or cut them")
        shape.append(lengths.pop())
        column, kind = column.flatten(), kind.value_type
    if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind) or arrow.types.is_boolean(kind)):
        return None
    if column.null_count:
        raise DeepStaticError(f"{place} has rows without a value")
    return column.to_numpy(zero_copy_only=False).reshape(shape)
