"""`python -m deepstatic.export`: models/export.py of the package, which makes the graph of a model."""

from .programs import run_script

if __name__ == "__main__":
    run_script("export", ("torch", "transformers", "onnx", "onnxscript", "onnxruntime", "numpy", "safetensors"))
