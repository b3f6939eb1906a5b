//===- Files.h - opening what the user and the model name -------------------===//
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace ds::import {

/// MODEL.onnx, or the model in a folder: model.onnx, else the only .onnx file there. Throws Failure.
std::filesystem::path modelFile(const std::string &path);

/// A regular file open for reading.
class InputFile {
public:
  /// A file that the user names.
  static std::shared_ptr<InputFile> open(const std::filesystem::path &path);
  /// A file that a model names, which is not trusted: a relative path inside `folder`, without "..", without symbolic
  /// links on the way. Cf. openat2(2), RESOLVE_BENEATH.
  static std::shared_ptr<InputFile> openBeneath(const std::filesystem::path &folder, const std::string &location);

  InputFile(int descriptor, std::string name);
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  ~InputFile();

  uint64_t size() const { return size_; }
  const std::string &name() const { return name_; }
  void read(uint64_t offset, std::span<char> into) const;
  /// All bytes, mapped until the file goes. Where one is lost, as when the file is cut short, the process ends with a
  /// sentence.
  std::span<const char> map();

private:
  int descriptor_;
  std::string name_;
  uint64_t size_ = 0; // bytes
  void *mapping_ = nullptr;
};

/// The first 8 + n bytes of a safetensors file: n, little-endian, and the JSON that says where its tensors lie; empty
/// for a file that is none.
std::string safetensorsHeader(const InputFile &file);

} // namespace ds::import
