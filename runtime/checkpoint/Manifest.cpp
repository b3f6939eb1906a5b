//===- Manifest.cpp - manifest.json of a checkpoint -----------------------===//
#include "runtime/checkpoint/Manifest.h"

#include "core/Error.h"
#include "core/Files.h"
#include "core/Sha256.h"
#include "core/Shape.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/ManifestChecks.h"
#include "runtime/checkpoint/ManifestFields.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t largest = size_t(1) << 30; // bytes; a thousand ranks need some 50 MB

constexpr std::pair<Manifest::Kind, const char *> kindNames[] = {{Manifest::Kind::Parameter, "parameter"},
                                                                 {Manifest::Kind::Optimizer, "optimizer"},
                                                                 {Manifest::Kind::Buffer, "buffer"},
                                                                 {Manifest::Kind::Scalar, "scalar"}};

Manifest::Kind kindOf(const ManifestFields &fields) {
  const std::string text = fields.text("kind");
  for (const auto &[kind, name] : kindNames)
    if (text == name)
      return kind;
  fields.refuse("kind", "is " + text + ", not parameter, optimizer, buffer or scalar");
}

Manifest::Piece pieceOf(const ManifestFields &piece, uint32_t rank) {
  return {piece.text("file"), piece.text("tensor"), piece.number("begin"), piece.number("end"), rank};
}

/// Format 1: those of data-parallel rank 0, and where the others have values of their own, theirs.
void readVersions1(const ManifestFields &fields, Manifest::Variable &variable) {
  for (const ManifestFields &piece : fields.list("pieces").elements())
    variable.versions[0].push_back(pieceOf(piece, 0));
  if (!fields.has("other_data_ranks"))
    return;
  for (const ManifestFields &pieces : fields.list("other_data_ranks").elements()) {
    const auto rank = uint32_t(variable.versions.size());
    variable.versions.emplace_back();
    for (const ManifestFields &piece : pieces.elements())
      variable.versions.back().push_back(pieceOf(piece, rank));
  }
  if (variable.versions.size() > 1)
    variable.placement.add_axes()->set_varies(true); // along axis 0, data
}

uint32_t axisCalled(const ManifestFields &fields, const char *key, const std::string &name,
                    const plan::proto::World &world) {
  const auto known = std::ranges::find(world.axes(), name, &plan::proto::Axis::name);
  if (known == world.axes().end())
    fields.refuse(key, "says " + name + ", which is no axis of the layout");
  return uint32_t(known - world.axes().begin());
}

void readPlacement(const ManifestFields &fields, const plan::proto::World &world, plan::proto::Placement &placement) {
  for (const ManifestFields &stated : fields.list("placement").elements()) {
    plan::proto::AxisPlacement &axis = *placement.add_axes();
    axis.set_axis(axisCalled(stated, "axis", stated.text("axis"), world));
    const std::string how = stated.text("how");
    if (how == "varies") {
      axis.set_varies(true);
    } else if (how == "shard") {
      plan::proto::Shard &shard = *axis.mutable_shard();
      shard.set_dimension(uint32_t(std::min<uint64_t>(stated.number("dimension"), UINT32_MAX)));
      shard.set_repeat(stated.number("repeat"));
      for (const ManifestFields &block : stated.list("blocks").elements()) {
        plan::proto::Block &added = *shard.add_blocks();
        added.set_offset(block.number("offset"));
        added.set_stride(block.number("stride"));
        added.set_size(block.number("size"));
      }
    } else {
      stated.refuse("how", "is " + how + ", not varies or shard");
    }
  }
}

/// The rank at a piece's coordinates along the axes of the variable's placement, at 0 along all others.
uint32_t rankOf(const ManifestFields &piece, const Manifest::Variable &variable, const plan::proto::World &world) {
  uint64_t rank = 0;
  for (const plan::proto::AxisPlacement &along : variable.placement.axes()) {
    const plan::proto::Axis &axis = world.axes(int(along.axis()));
    const uint64_t at = piece.object("at").number(axis.name().c_str());
    if (at >= axis.size())
      piece.refuse("at", "is " + std::to_string(at) + " along " + axis.name() + ", which has " +
                             std::to_string(axis.size()) + " ranks");
    rank += at * plan::axisStride(world, along.axis());
  }
  return uint32_t(rank);
}

plan::Group versionsOf(const Manifest::Variable &variable, const plan::proto::World &world) {
  return {world, plan::varyingAxes(world, variable.placement)};
}

void readVersions(const ManifestFields &fields, const plan::proto::World &world, Manifest::Variable &variable) {
  if (fields.has("placement"))
    readPlacement(fields, world, variable.placement);
  for (const ManifestFields &piece : fields.list("pieces").elements()) {
    const uint32_t rank = rankOf(piece, variable, world);
    const uint64_t version = versionsOf(variable, world).coordinate(rank);
    if (version == variable.versions.size())
      variable.versions.emplace_back();
    else if (version + 1 != variable.versions.size())
      piece.refuse("at", "is out of order, or leaves out a rank");
    variable.versions.back().push_back(pieceOf(piece, rank));
  }
}

Manifest::Variable variableOf(const ManifestFields &fields, const Manifest::Layout &layout, uint64_t format) {
  Manifest::Variable variable{.name = fields.text("name"), .kind = kindOf(fields)};
  if (variable.kind == Manifest::Kind::Optimizer) {
    variable.of = fields.text("of");
    variable.slot = fields.text("slot");
  }
  if (fields.has("aliases"))
    variable.aliases = fields.texts("aliases");
  if (fields.has("persistent"))
    variable.persistent = fields.flag("persistent");
  variable.dtype = fields.text("dtype");
  for (const uint64_t dim : fields.numbers("shape"))
    variable.shape.push_back(int64_t(dim));
  if (format == 1)
    readVersions1(fields, variable);
  else
    readVersions(fields, layout.world, variable);
  return variable;
}

void readHistory(const ManifestFields &fields, Manifest &manifest) {
  for (const ManifestFields &file : fields.list("data").elements())
    manifest.data.push_back({file.text("name"), file.number("bytes"), file.text("digest")});
  for (const ManifestFields &change : fields.list("set").elements())
    manifest.set.push_back({change.number("step"), change.text("key"), change.json("value")});
}

void addAxis(plan::proto::World &world, const std::string &name, uint64_t size) {
  plan::proto::Axis &axis = *world.add_axes();
  axis.set_name(name);
  axis.set_size(uint32_t(std::min<uint64_t>(size, UINT32_MAX)));
}

void readContent(const ManifestFields &fields, uint64_t format, Manifest &manifest) {
  const ManifestFields layout = fields.object("layout");
  manifest.layout = {layout.number("ranks"), layout.number("data_parallel"), layout.number("stages"),
                     layout.number("zero")};
  if (format == 1)
    addAxis(manifest.layout.world, "data", manifest.layout.dataParallel);
  else
    for (const ManifestFields &axis : layout.list("axes").elements())
      addAxis(manifest.layout.world, axis.text("name"), axis.number("size"));
  plan::checkWorld(manifest.layout.world, "layout");
  for (const ManifestFields &variable : fields.list("variables").elements())
    manifest.variables.push_back(variableOf(variable, manifest.layout, format));
  for (const ManifestFields &file : fields.list("files").elements())
    manifest.files.push_back({file.text("name"), file.number("bytes"), file.text("sha256")});
}

constexpr std::string_view sealKey = ",\n \"sha256\": \"", objectEnd = "\n}";

/// The text of an object without its end, closed by the SHA-256 of it as the last of its keys.
std::string sealed(std::string_view content) {
  return std::string(content) + std::string(sealKey) + hexOf(sha256(std::as_bytes(std::span(content)))) + "\"" +
         std::string(objectEnd) + "\n";
}

void requireSeal(std::string_view text, const std::string &digest) {
  const std::string_view content = text.substr(0, text.rfind(sealKey));
  if (text != sealed(content))
    throw Error("it was edited after it was written, or is damaged: the SHA-256 of its text is " +
                hexOf(sha256(std::as_bytes(std::span(content)))) + ", it says " + digest);
}

/// Where ranks that have the piece stand along the axes of the variable's placement.
Json coordinatesOf(const Manifest::Piece &piece, const Manifest::Variable &variable, const plan::proto::World &world) {
  Json coordinates = Json::object();
  for (const plan::proto::AxisPlacement &along : variable.placement.axes()) {
    const uint64_t at = plan::axisCoordinate(world, along.axis(), piece.rank);
    coordinates[world.axes(int(along.axis())).name()] = along.has_shard() ? at - at % along.shard().repeat() : at;
  }
  return coordinates;
}

Json piecesOf(const Manifest::Variable &variable, const plan::proto::World &world) {
  Json list = Json::array();
  for (const std::vector<Manifest::Piece> &pieces : variable.versions)
    for (const Manifest::Piece &piece : pieces) {
      Json &json = list.emplace_back(Json::object());
      if (variable.placement.axes_size() > 0)
        json["at"] = coordinatesOf(piece, variable, world);
      json.update({{"file", piece.file}, {"tensor", piece.tensor}, {"begin", piece.begin}, {"end", piece.end}});
    }
  return list;
}

Json placementOf(const Manifest::Variable &variable, const plan::proto::World &world) {
  Json list = Json::array();
  for (const plan::proto::AxisPlacement &along : variable.placement.axes()) {
    Json &json = list.emplace_back(
        Json{{"axis", world.axes(int(along.axis())).name()}, {"how", along.has_shard() ? "shard" : "varies"}});
    if (!along.has_shard())
      continue;
    json.update({{"dimension", along.shard().dimension()}, {"repeat", along.shard().repeat()}});
    for (const plan::proto::Block &block : along.shard().blocks())
      json["blocks"].push_back({{"offset", block.offset()}, {"stride", block.stride()}, {"size", block.size()}});
  }
  return list;
}

Json jsonOf(const Manifest::Variable &variable, const plan::proto::World &world) {
  Json json = {{"name", variable.name}};
  for (const auto &[kind, name] : kindNames)
    if (variable.kind == kind)
      json["kind"] = name;
  if (variable.kind == Manifest::Kind::Optimizer) {
    json["of"] = variable.of;
    json["slot"] = variable.slot;
  }
  if (!variable.aliases.empty())
    json["aliases"] = variable.aliases;
  if (variable.kind == Manifest::Kind::Buffer)
    json["persistent"] = variable.persistent;
  json["dtype"] = variable.dtype;
  json["shape"] = variable.shape;
  if (variable.placement.axes_size() > 0)
    json["placement"] = placementOf(variable, world);
  json["pieces"] = piecesOf(variable, world);
  return json;
}

} // namespace

const Manifest::Variable *Manifest::find(std::string_view name) const {
  for (const Variable &variable : variables)
    if (variable.name == name)
      return &variable;
  return nullptr;
}

uint64_t elementsOf(const Manifest::Variable &variable) { return uint64_t(elementCount(variable.shape)); }

std::string nameOfPart(const std::string &variable, const plan::proto::World &world,
                       const plan::proto::Placement &placement, uint32_t rank) {
  return plan::partsOf(world, placement) == 1 ? variable
                                              : variable + "#" + std::to_string(plan::partOf(world, placement, rank));
}

Manifest parseManifest(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw Error("it is no JSON object, so it is damaged or no checkpoint's manifest");
  const ManifestFields fields(json, "");
  const uint64_t format = fields.number("format");
  if (format == 0 || format > Manifest::formatVersion)
    throw Error("its format is " + std::to_string(format) + ", but this ds-run reads formats 1 to " +
                std::to_string(Manifest::formatVersion) + "; use the ds-run that wrote it, or a newer one");
  const bool isSealed = fields.has("sha256");
  if (isSealed)
    requireSeal(text, fields.text("sha256"));
  Manifest manifest{.deepstatic = fields.text("deepstatic"),
                    .plan = fields.text("plan"),
                    .model = fields.text("model"),
                    .run = fields.text("run"),
                    .step = fields.number("step"),
                    .samples = fields.number("samples"),
                    .samplesPerStep = fields.number("samples_per_step"),
                    .seed = fields.number("seed"),
                    .shuffle = fields.flag("shuffle"),
                    .isSealed = isSealed};
  readHistory(fields, manifest);
  readContent(fields, format, manifest);
  checkManifest(manifest);
  return manifest;
}

Manifest readManifest(const std::string &path) {
  const std::optional<std::string> text = readRegular(path, largest);
  if (!text)
    throw Error(path + " cannot be read: " + std::strerror(errno));
  try {
    return parseManifest(*text);
  } catch (const Error &error) {
    throw Error(path + ": " + error.what());
  }
}

std::string unsealedNote(const std::string &checkpoint) {
  return "the manifest of checkpoint " + checkpoint +
         " has no SHA-256 of its own, as those of older versions, so nobody can tell whether it was edited";
}

std::string manifestText(const Manifest &manifest) {
  Json json = {{"format", Manifest::formatVersion},
               {"deepstatic", manifest.deepstatic},
               {"plan", manifest.plan},
               {"model", manifest.model},
               {"run", manifest.run},
               {"step", manifest.step},
               {"samples", manifest.samples},
               {"samples_per_step", manifest.samplesPerStep},
               {"seed", manifest.seed},
               {"shuffle", manifest.shuffle}};
  for (const char *list : {"data", "set"})
    json[list] = Json::array();
  for (const Manifest::DataFile &file : manifest.data)
    json["data"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}});
  for (const Manifest::Change &change : manifest.set)
    json["set"].push_back({{"step", change.step}, {"key", change.key}, {"value", Json::parse(change.value)}});
  const Manifest::Layout &layout = manifest.layout;
  json["layout"] = {{"ranks", layout.ranks},
                    {"data_parallel", layout.dataParallel},
                    {"stages", layout.stages},
                    {"zero", layout.zero},
                    {"axes", Json::array()}};
  for (const plan::proto::Axis &axis : layout.world.axes())
    json["layout"]["axes"].push_back({{"name", axis.name()}, {"size", axis.size()}});
  for (const char *list : {"variables", "files"})
    json[list] = Json::array();
  for (const Manifest::Variable &variable : manifest.variables)
    json["variables"].push_back(jsonOf(variable, layout.world));
  for (const Manifest::File &file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  std::string content = json.dump(1, ' ', false, Json::error_handler_t::replace);
  content.resize(content.size() - objectEnd.size());
  return sealed(content);
}

} // namespace ds::runtime
