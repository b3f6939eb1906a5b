//===- ManifestChecks.cpp - what must hold between a manifest's fields ----===//
#include "runtime/checkpoint/ManifestChecks.h"

#include "core/Error.h"
#include "core/Shape.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint64_t mostSamples = uint64_t(1) << 62; // below it, sums with what a run adds do not wrap

bool isHex(const std::string &text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// A manifest from elsewhere must not make anybody read outside of its folder.
bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

void checkFiles(const Manifest &manifest, std::set<std::string> &names) {
  for (const Manifest::File &file : manifest.files) {
    if (!isPlainName(file.name))
      throw Error("its file '" + file.name + "' is no name within the folder");
    if (!names.insert(file.name).second)
      throw Error("its file " + file.name + " stands twice");
    if (!isHex(file.sha256, 64))
      throw Error("the sha256 of its file " + file.name + " is not 64 hexadecimal digits");
  }
}

/// Those of a version, part by part: the elements of each part from the first to the last.
void checkPieces(const Manifest::Variable &variable, const std::vector<Manifest::Piece> &pieces,
                 const plan::proto::World &world, const std::set<std::string> &files) {
  const auto ofPart = uint64_t(elementCount(plan::pieceShape(variable.placement, variable.shape)));
  uint64_t next = 0; // element of all parts, one behind the other
  for (const Manifest::Piece &piece : pieces) {
    const uint64_t before = plan::partOf(world, variable.placement, piece.rank) * ofPart;
    if (!files.contains(piece.file))
      throw Error("variable " + variable.name + " lies in " + piece.file + ", which is not among its files");
    if (before + piece.begin != next || piece.end <= piece.begin || piece.end > ofPart)
      throw Error("the pieces of variable " + variable.name + " do not follow each other: elements " +
                  std::to_string(before + piece.begin) + " to " + std::to_string(before + piece.end) + " come where " +
                  std::to_string(next) + " is next");
    const std::string name = nameOfPart(variable.name, world, variable.placement, piece.rank);
    if (piece.tensor != name && piece.tensor != name + "@" + std::to_string(piece.begin))
      throw Error("variable " + variable.name + " lies in tensor " + piece.tensor + " from element " +
                  std::to_string(piece.begin) + " on, whose name is another's: the pieces of two were exchanged");
    next = before + piece.end;
  }
  if (next != elementsOf(variable))
    throw Error("the pieces of variable " + variable.name + " have " + std::to_string(next) + " elements, but shape " +
                toString(variable.shape) + " has " + std::to_string(elementsOf(variable)));
}

/// The names of the axes that a variable varies along.
std::string variesAlong(const Manifest::Variable &variable, const plan::proto::World &world) {
  std::string names;
  for (const plan::proto::AxisPlacement &along : variable.placement.axes())
    if (along.varies())
      names += (names.empty() ? "" : " and ") + world.axes(int(along.axis())).name();
  return names;
}

void checkVariable(const Manifest::Variable &variable, const Manifest &manifest, const std::set<std::string> &files) {
  if (safetensorsElementBytes(variable.dtype) == 0)
    throw Error("variable " + variable.name + " has dtype '" + variable.dtype + "', which is not known");
  if (!checkedElementCount(variable.shape))
    throw Error("variable " + variable.name + " has shape " + toString(variable.shape) + ", which is too large");
  const plan::proto::World &world = manifest.layout.world;
  plan::checkPlacement(world, variable.placement, variable.shape, "variable " + variable.name + ", placement");
  for (const std::vector<Manifest::Piece> &pieces : variable.versions)
    checkPieces(variable, pieces, world, files);
  const uint64_t versions = plan::Group(world, plan::varyingAxes(world, variable.placement)).size();
  if (variable.versions.size() != versions && elementsOf(variable) > 0) // of nothing there are no pieces
    throw Error("variable " + variable.name + " has values of " + std::to_string(variable.versions.size()) +
                " ranks, but along " + variesAlong(variable, world) + " the layout has " + std::to_string(versions));
}

} // namespace

void checkManifest(const Manifest &manifest) {
  std::set<std::string> files, names, parameters;
  checkFiles(manifest, files);
  for (const Manifest::Variable &variable : manifest.variables) {
    if (!names.insert(variable.name).second)
      throw Error("its variable " + variable.name + " stands twice");
    if (variable.kind == Manifest::Kind::Parameter)
      parameters.insert(variable.name);
    checkVariable(variable, manifest, files);
  }
  for (const Manifest::Variable &variable : manifest.variables)
    if (variable.kind == Manifest::Kind::Optimizer && !parameters.contains(variable.of))
      throw Error("variable " + variable.name + " is state of " + variable.of + ", which is none of its parameters");
  if (manifest.samplesPerStep == 0)
    throw Error("its samples_per_step is 0");
  for (const auto &[key, count] : {std::pair("step", manifest.step), std::pair("samples", manifest.samples),
                                   std::pair("samples_per_step", manifest.samplesPerStep)})
    if (count > mostSamples)
      throw Error("its " + std::string(key) + " (" + std::to_string(count) + ") is more than any run reaches (" +
                  std::to_string(mostSamples) + ")");
}

} // namespace ds::runtime
