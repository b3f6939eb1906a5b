//===- VariableSources.cpp - where first values come from -----------------===//
#include "runtime/executor/VariableSources.h"

#include "core/Crc32c.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Shape.h"
#include "core/WeightNames.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "runtime/data/FileDigest.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/data/Widening.h"
#include "runtime/executor/RandomValues.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint64_t pieceBytes = uint64_t(1) << 20;

Shape shapeOf(const plan::proto::Variable &variable) { return {variable.shape().begin(), variable.shape().end()}; }

std::vector<std::string> namesOf(const plan::proto::Variable &variable) {
  std::vector<std::string> names = {variable.name()};
  names.insert(names.end(), variable.aliases().begin(), variable.aliases().end());
  return names;
}

/// Writes `value` as every element of `target`.
void fillElements(double value, DType dtype, std::span<std::byte> target) {
  const auto fill = [&]<typename T>(T element) {
    for (size_t at = 0; at + sizeof(T) <= target.size(); at += sizeof(T))
      std::memcpy(&target[at], &element, sizeof(T));
  };
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
    return fill(uint8_t(value));
  case DType::U16:
    return fill(uint16_t(value));
  case DType::U32:
    return fill(uint32_t(value));
  case DType::I32:
    return fill(int32_t(value));
  case DType::I64:
    return fill(int64_t(value));
  case DType::F32:
    return fill(float(value));
  case DType::F64:
    return fill(value);
  case DType::BF16:
    return fill(BFloat16(float(value)));
  case DType::F16:
    return fill(Float16(float(value)));
  }
}

/// "2 of 28 parameters are bfloat16", for people.
const char *longName(const std::string &dtype) {
  return dtype == "BF16" ? "bfloat16" : dtype == "F16" ? "float16" : dtype == "F32" ? "float32" : dtype.c_str();
}

/// "model-00002-of-00003.safetensors" stands for three files, all of which must be there.
void refuseMissingShards(const std::string &folder, const std::vector<std::string> &paths) {
  static const std::regex numbered("(.*-)([0-9]+)-of-([0-9]+)(\\.safetensors)");
  const std::set<std::string> present(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    std::smatch parts;
    if (!std::regex_match(path, parts, numbered) || parts.length(3) > 9)
      continue;
    const std::string total = parts[3];
    for (int64_t i = 1; i <= std::stoll(total) && i <= int64_t(paths.size()) + 1; ++i) {
      std::string number = std::to_string(i);
      number.insert(0, std::max<size_t>(number.size(), size_t(parts.length(2))) - number.size(), '0');
      const std::string shard = parts[1].str() + number + "-of-" + total + parts[4].str();
      if (!present.contains(shard))
        throw Error("--weights " + folder + " holds " + std::filesystem::path(path).filename().string() + ", but not " +
                    std::filesystem::path(shard).filename().string() + "; a sharded model needs all of its files");
    }
  }
}

template <typename T> std::optional<uint64_t> firstNan(std::span<const std::byte> bytes) {
  const auto *values = reinterpret_cast<const T *>(bytes.data()); // pieces are allocated, hence aligned
  const size_t count = bytes.size() / sizeof(T);
  bool any = false; // without a branch, so that it runs at the speed of memory
  for (size_t i = 0; i < count; ++i)
    any |= values[i] != values[i];
  for (size_t i = 0; any && i < count; ++i)
    if (values[i] != values[i])
      return i;
  return std::nullopt;
}

} // namespace

uint32_t fileCrc32c(const ReadOnlyFile &file) {
  std::vector<std::byte> piece(std::min(pieceBytes, file.bytes()));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < file.bytes(); at += piece.size()) {
    const auto part = std::span(piece).first(std::min<uint64_t>(piece.size(), file.bytes() - at));
    file.read(at, part);
    crc = crc32c(part, crc);
  }
  return crc;
}

uint64_t VariableSources::weightsDigest() const {
  uint64_t digest = 0;
  for (const SafetensorsFile &file : weights_)
    digest = fileDigest(file.file(), digest);
  return digest;
}

VariableSources::VariableSources(const plan::proto::Plan &plan, const Options &options)
    : plan_(plan), options_(options) {
  for (const plan::proto::Variable &variable : plan.variables())
    parameters_ += variable.kind() == plan::proto::Variable::PARAMETER;
  openWeights();
  matchWeights();
  refuseUnmatched();
  refuseMissing();
  openPlanFiles();
}

void VariableSources::openWeights() {
  namespace fs = std::filesystem;
  if (options_.weightsPath.empty())
    return;
  // An index stands for the folder that it lies in.
  const bool isIndex = options_.weightsPath.ends_with(".index.json") && isThere(options_.weightsPath);
  const fs::path folder = isIndex ? fs::absolute(options_.weightsPath).parent_path() : fs::path(options_.weightsPath);
  if (!isFolder(folder)) {
    weights_.emplace_back(options_.weightsPath);
    return;
  }
  std::vector<std::string> paths;
  for (const fs::path &path : listFolder(folder))
    if (path.extension() == ".safetensors")
      paths.push_back(path);
  if (paths.empty())
    throw Error("--weights " + options_.weightsPath + " is a folder without safetensors files");
  refuseMissingShards(folder.string(), paths);
  for (const std::string &path : paths)
    weights_.emplace_back(path);
}

const SafetensorsFile *VariableSources::fileWith(const std::string &name) const {
  const auto file = std::ranges::find_if(weights_, [&](const SafetensorsFile &f) { return f.find(name) != nullptr; });
  return file == weights_.end() ? nullptr : &*file;
}

void VariableSources::matchWeights() {
  if (weights_.empty())
    return;
  const auto has = [&](const std::string &name) { return fileWith(name) != nullptr; };
  std::vector<std::vector<std::string>> parameters;
  for (const plan::proto::Variable &variable : plan_.variables())
    if (variable.kind() == plan::proto::Variable::PARAMETER)
      parameters.push_back(namesOf(variable));
  rule_ = findPrefixRule(parameters, has);
  std::set<std::string> known;
  for (int i = 0; i < plan_.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan_.variables(i);
    const std::vector<std::string> names = namesOf(variable);
    const std::string name = nameInFile(names, rule_, has);
    if (!name.empty() && !isStored(uint32_t(i)))
      matchVariable(uint32_t(i), name);
    else if (variable.kind() == plan::proto::Variable::PARAMETER && !isStored(uint32_t(i)))
      unmatched_.push_back(variable.name());
    for (const std::string &name : names) {
      known.insert(name);
      known.insert(rule_.fileName(name));
    }
  }
  for (const SafetensorsFile &file : weights_)
    for (const auto &[name, tensor] : file.tensors())
      if (!known.contains(name))
        unusedNames_.push_back(name);
}

void VariableSources::matchVariable(uint32_t index, const std::string &name) {
  const plan::proto::Variable &variable = plan_.variables(int(index));
  const SafetensorsFile &file = *fileWith(name);
  const SafetensorsFile::Tensor &tensor = *file.find(name);
  const DType dtype = DType(variable.dtype());
  if (weightWidening(tensor.dtype, dtype) == nullptr || tensor.shape != shapeOf(variable)) {
    const bool isNarrower = tensor.dtype == "F64" && (dtype == DType::F32 || isNarrowFloat(dtype));
    throw Error(file.path() + ": " + name + " is " + tensor.dtype + " " + toString(tensor.shape) +
                ", but the plan wants " + std::string(ds::name(dtype)) + " " + toString(shapeOf(variable)) +
                (isNarrower ? "; weights of float64 are not rounded: save them as float32" : ""));
  }
  const bool isSame = tensor.dtype == safetensorsName(dtype);
  parts_.emplace(index, FilePart{&file.file(), tensor.offset, isSame ? "" : tensor.dtype});
}

/// Whoever gives weights does not want to train from drawn ones.
void VariableSources::refuseUnmatched() const {
  if (weights_.empty())
    return;
  std::vector<std::string> drawn;
  for (const plan::proto::Variable &variable : plan_.variables())
    if (std::ranges::find(unmatched_, variable.name()) != unmatched_.end() && !variable.source().has_range() &&
        !variable.source().has_literal())
      drawn.push_back(variable.name());
  const bool hasNone = parameters_ > 0 && unmatched_.size() == parameters_;
  if (drawn.empty() && !hasNone)
    return;
  const std::vector<std::string> &missing = hasNone ? unmatched_ : drawn;
  throw Error("--weights " + options_.weightsPath + " lacks " + std::to_string(missing.size()) + " of the plan's " +
              std::to_string(parameters_) + " parameters: " + firstNames(missing) +
              (unusedNames_.empty() ? "" : "; it has " + firstNames(unusedNames_) + ", which the plan does not know") +
              "; names must be the same but for a prefix such as model. or module.");
}

std::vector<std::string> VariableSources::notes() const {
  std::vector<std::string> notes;
  std::map<std::pair<std::string, std::string>, uint64_t> converted; // by what they are, and what became of them
  for (const auto &[index, part] : parts_)
    if (const plan::proto::Variable &own = plan_.variables(int(index));
        own.kind() == plan::proto::Variable::PARAMETER && !part.dtype.empty()) {
      const DType dtype = DType(own.dtype());
      ++converted[{part.dtype, (isNarrowFloat(dtype) ? "rounded to " : "widened to ") + std::string(ds::name(dtype))}];
    }
  const std::string from = options_.weightsPath.empty() ? "the plan's weight files" : options_.weightsPath;
  for (const auto &[change, count] : converted)
    notes.push_back(std::to_string(count) + " of " + std::to_string(parameters_) + " parameters are " +
                    longName(change.first) + " in " + from + " and were " + change.second);
  if (!rule_.prefix.empty())
    notes.push_back(rule_.sentence(options_.weightsPath));
  if (!unmatched_.empty())
    notes.push_back(std::to_string(unmatched_.size()) + " of " + std::to_string(parameters_) +
                    " parameters are not in " + options_.weightsPath +
                    " and begin with the plan's own values: " + firstNames(unmatched_));
  return notes;
}

void VariableSources::refuseMissing() const {
  std::string names;
  int count = 0;
  for (int i = 0; i < plan_.variables_size(); ++i) {
    if (plan_.variables(i).source().from_case() != plan::proto::Source::kMissing || parts_.contains(uint32_t(i)) ||
        isStored(uint32_t(i)))
      continue;
    if (++count <= 3)
      names += (count > 1 ? ", " : "") + plan_.variables(i).name();
  }
  if (count == 0)
    return;
  throw Error("the plan has no values for " + names + (count > 3 ? " and " + std::to_string(count - 3) + " more" : "") +
                  (weights_.empty() ? "" : ", nor does " + options_.weightsPath) +
                  "; give a safetensors file that holds them with --weights",
              weights_.empty() ? "ds-run ... --weights model.safetensors" : "");
}

ReadOnlyFile VariableSources::openPlanFile(const std::string &path) const {
  const std::filesystem::path place = std::filesystem::absolute(std::filesystem::path(options_.planFolder) / path);
  if (!isThere(place))
    throw Error("weight file " + place.lexically_normal().string() + " does not exist: the plan names it as " + path +
                    ", relative to its own folder; move the two together or give the weights",
                "ds-run ... --weights " + std::filesystem::path(path).filename().string());
  return ReadOnlyFile(place);
}

void VariableSources::openPlanFiles() {
  for (int i = 0; i < plan_.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan_.variables(i);
    if (variable.source().from_case() != plan::proto::Source::kRange || parts_.contains(uint32_t(i)) ||
        isStored(uint32_t(i)))
      continue;
    const uint32_t index = variable.source().range().file();
    if (!planFiles_.contains(index)) {
      const plan::proto::WeightFile &expected = plan_.weight_files(int(index));
      ReadOnlyFile file = openPlanFile(expected.path());
      if (file.bytes() != expected.size())
        throw Error("weight file " + file.path() + " has " + std::to_string(file.bytes()) +
                    " bytes, but the plan was compiled from one of " + std::to_string(expected.size()) +
                    "; compile the plan again or give --weights");
      if (fileCrc32c(file) != expected.crc32c())
        throw Error("weight file " + file.path() +
                    " has another CRC-32C than when the plan was compiled; compile the "
                    "plan again or give --weights");
      planFiles_.emplace(index, std::move(file));
    }
    parts_.emplace(uint32_t(i), FilePart{&planFiles_.at(index), variable.source().range().offset(),
                                         variable.source().range().dtype()});
  }
}

void VariableSources::generate(const plan::proto::Variable &variable, uint32_t index, uint64_t first,
                               std::span<std::byte> target) const {
  const DType dtype = DType(variable.dtype());
  const auto elementBytes = uint64_t(byteSize(dtype));
  const plan::proto::Source &source = variable.source();
  if (source.has_literal()) {
    std::memcpy(target.data(), source.literal().data() + first * elementBytes, target.size());
  } else if (source.has_random()) {
    const RandomValues random{source.random().distribution() == "normal", source.random().mean(),
                              source.random().deviation(), options_.seed, index};
    random.write(dtype, first, target.size() / elementBytes, target.data(), options_.threads);
  } else {
    fillElements(source.fill(), dtype, target);
  }
}

/// Such a run would print NaN from its first step on.
void VariableSources::refuseNan(const plan::proto::Variable &variable, uint64_t first,
                                std::span<const std::byte> bytes) const {
  const DType dtype = DType(variable.dtype());
  const std::optional<uint64_t> at = dtype == DType::F32    ? firstNan<float>(bytes)
                                     : dtype == DType::F64  ? firstNan<double>(bytes)
                                     : dtype == DType::BF16 ? firstNan<BFloat16>(bytes)
                                     : dtype == DType::F16  ? firstNan<Float16>(bytes)
                                                            : std::nullopt;
  if (at)
    throw Error("parameter " + variable.name() + " is NaN at element " + std::to_string(first + *at) +
                "; nothing can be trained from such weights: give others with --weights");
}

/// Converts elements of a file to the variable's type. What is trained may be rounded to 16 bits, but not to infinity.
static void convertTo(const plan::proto::Variable &variable, uint64_t first, const std::string &from,
                      std::span<const std::byte> stored, std::span<std::byte> target, const std::string &where) {
  const DType dtype = DType(variable.dtype());
  const uint64_t count = target.size() / uint64_t(byteSize(dtype));
  weightWidening(from, dtype)(stored.data(), target.data(), count);
  if (!isNarrowFloat(dtype))
    return;
  std::vector<float> has(count), kept(count);
  widening(from, DType::F32)(stored.data(), reinterpret_cast<std::byte *>(has.data()), count);
  widening(safetensorsName(dtype), DType::F32)(target.data(), reinterpret_cast<std::byte *>(kept.data()), count);
  for (uint64_t i = 0; i < count; ++i) {
    const bool isLost = !variable.trainable() && has[i] != kept[i] && !std::isnan(has[i]);
    if (!isLost && (std::isfinite(kept[i]) || !std::isfinite(has[i])))
      continue;
    const std::string type(name(dtype));
    throw Error(where + " has " + std::to_string(has[i]) + " as element " + std::to_string(first + i) + " of " +
                variable.name() + ", which is no number of " + type + ", in which the plan holds it; " +
                (variable.trainable()
                     ? "compile without " + std::string(dtype == DType::BF16 ? "bf16.bf16" : "fp16.fp16") +
                           "_master_weights_and_grads"
                     : "compile with these weights, or with --without ds-narrow-frozen"));
  }
}

uint64_t VariableSources::readStored(uint32_t variable, uint64_t version, uint64_t first, uint64_t count,
                                     std::span<std::byte> target) const {
  const plan::proto::Variable &wanted = plan_.variables(int(variable));
  const DType dtype = DType(wanted.dtype());
  const std::vector<StoredVariables::Piece> &pieces = options_.stored->pieces.at({variable, version});
  const auto piece = std::ranges::upper_bound(pieces, first, {}, &StoredVariables::Piece::end);
  const uint64_t elements = std::min(count, piece->end - first), storedBytes = safetensorsElementBytes(piece->dtype),
                 at = piece->offset + (first - piece->begin) * storedBytes;
  const std::span<std::byte> bytes = target.first(elements * uint64_t(byteSize(dtype)));
  if (piece->dtype == safetensorsName(dtype)) {
    piece->file->read(at, bytes);
    return elements;
  }
  std::vector<std::byte> stored(elements * storedBytes);
  piece->file->read(at, stored);
  convertTo(wanted, first, piece->dtype, stored, bytes, "the checkpoint");
  return elements;
}

void VariableSources::readPart(const FilePart &part, const plan::proto::Variable &variable, uint64_t first,
                               std::span<std::byte> target) const {
  const auto elementBytes = uint64_t(byteSize(DType(variable.dtype())));
  if (part.dtype.empty())
    return part.file->read(part.offset + first * elementBytes, target);
  const uint64_t storedBytes = safetensorsElementBytes(part.dtype), count = target.size() / elementBytes;
  std::vector<std::byte> stored(count * storedBytes);
  part.file->read(part.offset + first * storedBytes, stored);
  convertTo(variable, first, part.dtype, stored, target, part.file->path());
}

void VariableSources::read(uint32_t index, uint64_t first, uint64_t count,
                           const std::function<void(std::span<const std::byte>)> &sink, uint64_t version) const {
  const plan::proto::Variable &variable = plan_.variables(int(index));
  const auto elementBytes = uint64_t(byteSize(DType(variable.dtype())));
  std::vector<std::byte> piece(std::min(pieceBytes, count * elementBytes));
  const auto part = parts_.find(index);
  const bool stored = isStored(index);
  for (uint64_t done = 0; done < count;) {
    uint64_t elements = std::min(pieceBytes / elementBytes, count - done);
    const auto bytes = std::span(piece).first(elements * elementBytes);
    if (stored)
      elements = readStored(index, version, first + done, elements, bytes);
    else if (part != parts_.end())
      readPart(part->second, variable, first + done, bytes);
    else
      generate(variable, index, first + done, bytes);
    if (variable.kind() == plan::proto::Variable::PARAMETER && !stored) // a run may go on with NaN, and is resumed so
      refuseNan(variable, first + done, bytes);
    sink(bytes.first(elements * elementBytes));
    done += elements;
  }
}

} // namespace ds::runtime
