//===- Manifest.h - manifest.json of a checkpoint -------------------------===//
//
// A checkpoint is a folder of safetensors files, one a rank, and a manifest that says which elements of which variable
// lie where. It is all that is needed to load the state on any other number of ranks (docs/checkpoints.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::runtime {

struct Manifest {
  static constexpr uint64_t formatVersion = 3; ///< the newest that is read, and the one that is written

  /// Elements [begin, end) of what a rank has of the variable, laid flat, are the tensor `tensor` of `file`:
  /// one-dimensional, or in its shape where it is all of them. Where shards cut the variable or it varies, `rank` says
  /// which part and version that is: it is one of those in the layout that had them.
  struct Piece {
    std::string file, tensor;
    uint64_t begin = 0, end = 0;
    uint32_t rank = 0;
  };

  enum class Kind : uint8_t {
    Parameter,
    Optimizer, ///< state of one parameter: a moment
    Buffer,    ///< of the module: running statistics, masks
    Scalar,    ///< state of the run: the step counter
  };

  struct Variable {
    std::string name;
    Kind kind = Kind::Parameter;
    std::string of = {}, slot = {};        ///< of kind Optimizer: the parameter, and what of it: "exp_avg"
    std::vector<std::string> aliases = {}; ///< other names of a tied parameter
    bool persistent = true;                ///< whether a buffer belongs into exported weights
    std::string dtype = {};                ///< as safetensors name it: "F32"
    Shape shape = {};
    plan::proto::Placement placement = {}; ///< shards, and axes along which ranks have values of their own
    /// The pieces of each version (runtime/plan/world/Placement.h). They stand in order, part by part, and cover all
    /// elements once.
    std::vector<std::vector<Piece>> versions = {{}};
  };

  struct DataFile {
    std::string name;
    uint64_t bytes = 0;
    std::string digest; ///< fileDigest, 16 hexadecimal digits
  };

  /// What --set changed when `step` steps had been done.
  struct Change {
    uint64_t step = 0;
    std::string key, value; ///< the value as JSON
  };

  struct Layout {
    uint64_t ranks = 1, dataParallel = 1, stages = 1, zero = 0;
    plan::proto::World world = {}; ///< the ranks' mesh; of format 1, which knew no other axis, "data" alone
  };

  struct File {
    std::string name; ///< within the folder
    uint64_t bytes = 0;
    std::string sha256; ///< 64 hexadecimal digits
  };

  std::string deepstatic = {}; ///< version of ds-run
  std::string plan = {},
              model = {}; ///< SHA-256 as hexadecimal digits; the model's is empty where the plan does not say
  std::string run = {};   ///< id of the run that wrote it
  uint64_t step = 0;      ///< optimizer steps done, skipped ones included
  uint64_t samples = 0;   ///< samples of training data used so far
  uint64_t samplesPerStep = 1;
  uint64_t seed = 0;
  bool shuffle = false;
  std::vector<DataFile> data = {};
  std::vector<Change> set = {};
  Layout layout = {};
  std::vector<Variable> variables = {};
  std::vector<File> files = {};
  bool isSealed = false; ///< as read: with the SHA-256 of its own text, which older ds-runs did not write

  /// The variable, or nullptr.
  const Variable *find(std::string_view name) const;
};

/// Elements of a variable.
uint64_t elementsOf(const Manifest::Variable &variable);

/// What files call a rank's part of a variable: by its name, with "#1" for part 1 of several. Where a tensor is not all
/// of that, "@7" follows if it begins at element 7.
std::string nameOfPart(const std::string &variable, const plan::proto::World &world,
                       const plan::proto::Placement &placement, uint32_t rank);

/// Parses and checks everything that can be checked without the other files: types, names of files within the folder,
/// pieces that cover every variable once, and that nobody edited it. Throws ds::Error, one sentence, without the path.
Manifest parseManifest(std::string_view json);

/// As parseManifest; throws ds::Error that begins with the path.
Manifest readManifest(const std::string &path);

/// A sentence of a checkpoint whose manifest is not sealed.
std::string unsealedNote(const std::string &checkpoint);

/// What parseManifest reads back, sealed, and ends in a newline.
std::string manifestText(const Manifest &manifest);

} // namespace ds::runtime
