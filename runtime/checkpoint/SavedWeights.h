//===- SavedWeights.h - the weights that a run has left -------------------===//
#pragma once

#include "core/Shape.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/SafetensorsFile.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// Parameters and persistent buffers of a model as ds-run wrote them: a checkpoint, a folder of checkpoints (the newest
/// counts) or a safetensors file of --export.
class SavedWeights {
public:
  struct Tensor {
    std::string name;
    std::vector<std::string> aliases; ///< other names of a tied parameter
    std::string dtype;                ///< as exports have it and safetensors names it: "F32"
    Shape shape;
  };
  using Sink = std::function<void(std::span<const std::byte>)>;

  /// Throws ds::Error, also for a checkpoint with a damaged file.
  explicit SavedWeights(const std::string &path);

  /// What was read: the checkpoint's folder, or the file.
  const std::string &path() const { return path_; }
  const std::vector<Tensor> &tensors() const { return tensors_; }
  /// Hands elements [first, first + count) of a tensor to `sink`, in order, in pieces of at most a MiB, none of which
  /// cuts an element.
  void read(const Tensor &tensor, uint64_t first, uint64_t count, const Sink &sink) const;

private:
  struct Piece {
    const SafetensorsFile *file;
    uint64_t offset, elements;
    std::string dtype; ///< there
  };

  void openCheckpoint();
  void openFile();
  void add(const Manifest &manifest, const Manifest::Variable &variable);
  const SafetensorsFile &open(const std::string &path);

  std::string path_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::vector<Piece>> pieces_; // by tensor
  std::map<std::string, SafetensorsFile> files_;     // by path
};

/// Writes one safetensors file as --export does. Throws ds::Error.
void exportSafetensors(const SavedWeights &weights, const std::string &path);

/// The same of low-rank adapters alone. Throws ds::Error, also where there are none.
void exportAdapters(const SavedWeights &weights, const std::string &path);

} // namespace ds::runtime
