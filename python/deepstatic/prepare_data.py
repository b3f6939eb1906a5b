"""`python -m deepstatic.prepare_data`: models/prepare_data.py of the package, which makes data of text and images."""

from .programs import run_script

if __name__ == "__main__":
    run_script("prepare_data", ("numpy", "safetensors"))
