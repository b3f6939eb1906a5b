//===- Support.h - models for the importer's tests ---------------------------===//
#pragma once

#include "compiler/import/Import.h"
#include "compiler/import/files/onnx.pb.h"

#include <filesystem>
#include <string>

namespace ds::import {

/// What an import came to.
struct Outcome {
  bool ok = false;
  std::string text;     // the module, printed
  std::string located;  // with locations
  std::string error;    // the first error
  std::string warnings; // one a line
  int errors = 0;
};
Outcome runImport(const ImportOptions &options);
/// A model in memory, as if it were the file `path`.
Outcome runImport(const onnx::ModelProto &model, ImportOptions options = {});
Outcome runImport(std::string_view bytes, ImportOptions options = {});

/// A model in protobuf's text format.
onnx::ModelProto parseModel(const std::string &text);

/// y = f(x, w.0), loss = sum(y): x float32 [2, 3], w.0 float32 [3]; `nodes` in text format make y. Opset 20.
onnx::ModelProto smallModel(const std::string &nodes, const std::string &more = "");

/// A folder of its own, gone at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path &path() const { return path_; }
  std::string write(const std::string &name, std::string_view bytes) const;

private:
  std::filesystem::path path_;
};

/// A file of the source tree.
std::string sourcePath(const std::string &relative);
std::string readFile(const std::string &path);

} // namespace ds::import
