#!/usr/bin/env python3
"""Writes KnownKeys.inc: every configuration key that DeepSpeed knows, one macro line each, sorted by path.

    python3 compiler/config/generate_known_keys.py ds_config_keys.json > compiler/config/KnownKeys.inc

The input is a list: a header object, then one object a key with `path` (`*` stands for any name), `type`, `default` and
where they apply `values`, `alias_of` and `status: "removed"`. Run by hand when the list moves; the result is committed.
A path that several optimizers or schedulers share stands once: ParameterRules.cpp says which takes what.
"""
import json
import sys


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main(path):
    with open(path, encoding="utf-8") as file:
        header, *entries = json.load(file)
    keys = {}
    for entry in entries:
        removed = entry.get("status") == "removed"
        if entry["path"] in ("optimizer.params.*",):
            continue  # would make every misspelt parameter a known one
        known = keys.get(entry["path"])
        if known is None or known["removed"]:
            keys[entry["path"]] = {**entry, "removed": removed}
    print(f"// From the list of keys of DeepSpeed {header['deepspeed_version']} by generate_known_keys.py; do not edit.")
    print("// DS_KEY(path, type, default, values, alias of, removed)")
    for path, entry in sorted(keys.items()):
        default = json.dumps(entry.get("default"))
        values = json.dumps(entry["values"]) if "values" in entry and "*" not in entry["values"] else ""
        fields = [path, entry["type"], default, values, entry.get("alias_of", "")]
        print("DS_KEY(" + ", ".join(map(literal, fields)) + f", {str(entry['removed']).lower()})")


if __name__ == "__main__":
    main(sys.argv[1])
