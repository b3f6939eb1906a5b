//===- VariableSources.h - where first values come from -------------------===//
#pragma once

#include "core/DType.h"
#include "core/WeightNames.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

/// Values of variables in files of a checkpoint.
struct StoredVariables {
  /// Elements [begin, end) lie in `file` from `offset` on, of the type that safetensors names.
  struct Piece {
    const ReadOnlyFile *file;
    uint64_t offset;
    uint64_t begin, end;
    std::string dtype;
  };
  /// By variable and version (runtime/plan/world/Placement.h), ascending: at least what this process's ranks hold.
  std::map<std::pair<uint32_t, uint64_t>, std::vector<Piece>> pieces;

  bool has(uint32_t variable) const {
    const auto at = pieces.lower_bound({variable, 0});
    return at != pieces.end() && at->first.first == variable;
  }
};

/// The first values of a plan's variables: from a checkpoint, which wins over all else, from the files that the plan
/// names, from what it says inline, or from
/// --weights, which wins. All checks are made when it is built: sizes and checksums of the files needed, names, dtypes
/// and shapes. Later reads fail only if a file changes meanwhile.
class VariableSources {
public:
  struct Options {
    std::string planFolder;  ///< paths of weight files are relative to it
    std::string weightsPath; ///< --weights: a safetensors file or a folder of some; empty: none
    uint64_t seed = 0;
    const StoredVariables *stored = nullptr; ///< of --resume; outlives this; nullptr: none
    unsigned threads = 1;                    ///< that draw random values
  };

  /// Throws ds::Error.
  VariableSources(const plan::proto::Plan &plan, const Options &options);

  /// Hands elements [first, first + count) of a version of a variable to `sink`, in order, in pieces of at most 1 MiB.
  void read(uint32_t variable, uint64_t first, uint64_t count,
            const std::function<void(std::span<const std::byte>)> &sink, uint64_t version = 0) const;

  /// Of the files of --weights, in the order in which they are looked at; the plan's own have their checksums in the
  /// plan.
  uint64_t weightsDigest() const;

  /// Names in --weights that the plan has no use for.
  const std::vector<std::string> &unusedNames() const { return unusedNames_; }

  /// What people should know of how the weights were found, a sentence each: widened, by other names, not all.
  std::vector<std::string> notes() const;

private:
  struct FilePart {
    const ReadOnlyFile *file;
    uint64_t offset;
    std::string dtype; ///< of the elements there, as safetensors names it; empty: the variable's
  };

  bool isStored(uint32_t variable) const { return options_.stored != nullptr && options_.stored->has(variable); }
  /// Elements from `first` on that lie in one piece of the checkpoint, at most `count`; fills `target` with them.
  uint64_t readStored(uint32_t variable, uint64_t version, uint64_t first, uint64_t count,
                      std::span<std::byte> target) const;
  void openWeights();
  const SafetensorsFile *fileWith(const std::string &name) const;
  void matchWeights();
  void matchVariable(uint32_t variable, const std::string &name);
  void refuseUnmatched() const;
  void refuseMissing() const;
  /// Reads elements [first, first + as many as `target` holds), widened to the variable's type.
  void readPart(const FilePart &part, const plan::proto::Variable &variable, uint64_t first,
                std::span<std::byte> target) const;
  ReadOnlyFile openPlanFile(const std::string &path) const;
  void openPlanFiles();
  void refuseNan(const plan::proto::Variable &variable, uint64_t first, std::span<const std::byte> bytes) const;
  /// Fills `target` with elements from `first` on, where they do not come from a file.
  void generate(const plan::proto::Variable &variable, uint32_t index, uint64_t first,
                std::span<std::byte> target) const;

  const plan::proto::Plan &plan_;
  const Options options_;
  std::vector<SafetensorsFile> weights_;
  std::map<uint32_t, ReadOnlyFile> planFiles_; // by index; those that some variable needs
  std::map<uint32_t, FilePart> parts_;         // by variable; those that come from a file
  std::vector<std::string> unusedNames_;
  PrefixRule rule_;                    // by which names of --weights were found
  std::vector<std::string> unmatched_; // parameters that --weights lacks
  uint64_t parameters_ = 0;
};

/// CRC-32C of a whole file.
uint32_t fileCrc32c(const ReadOnlyFile &file);

} // namespace ds::runtime
