//===- Support.cpp - models for the importer's tests -------------------------===//
#include "test/unit/import/Support.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <fstream>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

/// LLVM's headers poison the free part of their arenas in our code, and its library, built without ASan, writes there.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

namespace ds::import {

template <typename Import> static Outcome observe(Import import) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Outcome outcome;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
      if (outcome.errors++ == 0)
        outcome.error = diagnostic.str();
    } else {
      outcome.warnings += diagnostic.str() + "\n";
    }
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = import(context);
  outcome.ok = bool(module);
  if (module) {
    EXPECT_TRUE(succeeded(mlir::verify(*module)));
    llvm::raw_string_ostream stream(outcome.text);
    module->print(stream);
    llvm::raw_string_ostream located(outcome.located);
    module->print(located, mlir::OpPrintingFlags().enableDebugInfo().useLocalScope());
  }
  EXPECT_EQ(outcome.errors, outcome.ok ? 0 : 1) << outcome.error;
  EXPECT_EQ(outcome.error.find('\n'), std::string::npos) << outcome.error;
  return outcome;
}

Outcome runImport(const ImportOptions &options) {
  return observe([&](mlir::MLIRContext &context) { return importModel(context, options); });
}

Outcome runImport(std::string_view bytes, ImportOptions options) {
  if (options.path.empty())
    options.path = "/nowhere/model.onnx";
  return observe([&](mlir::MLIRContext &context) { return importModel(context, options, bytes); });
}

Outcome runImport(const onnx::ModelProto &model, ImportOptions options) {
  return runImport(std::string_view(model.SerializeAsString()), std::move(options));
}

onnx::ModelProto parseModel(const std::string &text) {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

onnx::ModelProto smallModel(const std::string &nodes, const std::string &more) {
  return parseModel(R"(opset_import { version: 20 } graph {
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 3 } } } } }
    initializer { name: "w.0" data_type: 1 dims: 3 float_data: [1, 2, 3] })" +
                    nodes + R"(
    node { op_type: "ReduceSum" input: "y" output: "loss" attribute { name: "keepdims" i: 0 type: 2 } }
    output { name: "loss" type { tensor_type { elem_type: 1 shape {} } } } } )" +
                    more);
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "import_test_XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

std::string TemporaryFolder::write(const std::string &name, std::string_view bytes) const {
  std::ofstream(path_ / name, std::ios::binary) << bytes;
  return (path_ / name).string();
}

std::string sourcePath(const std::string &relative) { return std::string(DS_SOURCE_DIR) + "/" + relative; }

std::string readFile(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

} // namespace ds::import
