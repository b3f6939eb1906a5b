"""Gradients in a set come in the order of their hashes, which each process draws anew."""
import subprocess
import sys

NAMES = "print(list({'wte', 'wpe', 'c_attn', 'c_proj', 'c_fc'}), list(dict.fromkeys(['wte', 'wpe', 'c_attn', 'c_proj', 'c_fc'])), sep='|')"


def orders(seed):
    return subprocess.run([sys.executable, "-c", NAMES], env={"PYTHONHASHSEED": str(seed)}, capture_output=True, text=True,
                          check=True).stdout.strip().split("|")


ranks = [orders(seed) for seed in (1, 2, 3, 4)]
print(f"wrong: orders of four ranks, from a set {len({of_a_set for of_a_set, _ in ranks})}")
print(f"right: orders of four ranks, from a dict {len({of_a_dict for _, of_a_dict in ranks})}")
