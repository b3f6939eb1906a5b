# Configuration of lit: which files are tests, where the tools are.
import os

import lit.formats

config.name = "DeepStatic"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
# scripts/test.sh names the build directory whose ds-opt is tested.
build = os.environ.get("DS_BUILD_DIR") or os.path.join(config.test_source_root, "..", "..", "build", "dev")
config.test_exec_root = os.path.join(os.path.abspath(build), "test", "lit")
llvm_tools = os.environ.get("DS_LLVM_BIN", "/usr/lib/llvm-22/bin")
config.environment["PATH"] = os.pathsep.join([os.path.join(os.path.abspath(build), "bin"), llvm_tools, os.environ["PATH"]])
config.substitutions.append(("%data", os.path.join(config.test_source_root, "..", "data")))
