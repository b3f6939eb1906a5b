//===- FirstValues.cpp - whether training begins with the model's weights -===//
#include "compiler/sources/FirstValues.h"

#include "compiler/import/files/Files.h"
#include "compiler/sources/Adapters.h"
#include "compiler/sources/LossScale.h"
#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Sources.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "kernels/Numbers.h"
#include "runtime/plan/plan.pb.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ds::sources {
namespace {

namespace fs = std::filesystem;
namespace proto = plan::proto;
using Json = nlohmann::json;

/// What safetensors calls types that plans have.
std::string_view safetensorsName(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return "BOOL";
  case DType::I32:
    return "I32";
  case DType::I64:
    return "I64";
  case DType::F64:
    return "F64";
  case DType::BF16:
    return "BF16";
  case DType::F16:
    return "F16";
  default:
    return "F32";
  }
}

class FirstValues {
public:
  FirstValues(const proto::Plan &plan, const ModelFile &model, const Places &places, std::string planFolder)
      : plan_(plan), model_(model), weights_(places.weights), planFolder_(std::move(planFolder)) {}

  Claim require() {
    uint64_t inFiles = 0, given = 0, drawn = 0, folded = 0;
    const Adapters adapters(plan_, model_);
    for (const proto::Variable &variable : plan_.variables()) {
      if (adapters.contains(variable))
        continue;
      const auto tensor = model_.tensors.find(variable.name());
      if (variable.kind() == proto::Variable::OPTIMIZER || variable.kind() == proto::Variable::GRADIENT)
        requireZero(variable);
      else if (isGiven(plan_, variable) && !isModels(variable))
        requireGiven(variable), ++given;
      else if (tensor == model_.tensors.end())
        ++folded;
      else if (tensor->second.isHere)
        requireBytes(variable, tensor->second), ++inFiles;
      else
        requireDrawn(variable), ++drawn;
    }
    return {"first_values", std::to_string(inFiles) + " first values are the model's bytes, " +
                                (given > 0 ? std::to_string(given) + " are those of " + filesText() : "") +
                                std::to_string(drawn) +
                                " are drawn or set by its rules, optimizer state begins at zero; " +
                                std::to_string(folded) + " constants that were folded are the plan's word"};
  }

private:
  [[noreturn]] static void refuse(const proto::Variable &variable, const std::string &why) {
    throw Error("the first value of " + variable.name() + " is not the model's: " + why);
  }

  /// The loss scale of fp16 begins as the configuration says (LossScale.h).
  static void requireZero(const proto::Variable &variable) {
    if (!variable.has_of() && (variable.name() == lossScaleName || variable.name() == hysteresisName))
      return;
    if (!variable.source().has_fill() || variable.source().fill() != 0)
      throw Error(variable.name() + " is state of the training, and does not begin at zero in the plan");
  }

  /// The elements of a tensor of the model as the variable begins: of 16 bits, float32 is rounded.
  static std::string asKept(const proto::Variable &variable, const std::string &elements) {
    const DType dtype = DType(variable.dtype());
    if (!isNarrowFloat(dtype))
      return elements;
    const size_t count = elements.size() / sizeof(float);
    std::string kept(count * size_t(byteSize(dtype)), '\0');
    for (size_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, &elements[i * sizeof value], sizeof value);
      kernels::storeDouble(&kept[i * size_t(byteSize(dtype))], dtype, value);
    }
    return kept;
  }

  void requireBytes(const proto::Variable &variable, const Tensor &tensor) {
    const proto::Source &source = variable.source();
    if (tensor.isHere && tensor.file.empty()) {
      if (!source.has_literal() || source.literal() != asKept(variable, tensor.literal))
        refuse(variable, "its elements stand in the model's graph, and the plan has others");
      return;
    }
    if (!source.has_range())
      refuse(variable, "the model has its elements in a file, the plan takes none from there");
    requireRange(variable, tensor);
    if (const std::string file = weightFile(source.range().file()); !isSame(file, tensor.file))
      refuse(variable, "it lies in " + tensor.file + ", the plan takes it from " + file);
  }

  /// Whether it lies in a file that the model itself names.
  bool isModels(const proto::Variable &variable) {
    const auto tensor = model_.tensors.find(variable.name());
    return tensor != model_.tensors.end() && tensor->second.isHere && !tensor->second.file.empty() &&
           isSame(weightFile(variable.source().range().file()), tensor->second.file);
  }

  /// From the file or the folder that --weights names; without it, only what the model has no elements of.
  void requireGiven(const proto::Variable &variable) {
    const std::string file = weightFile(variable.source().range().file());
    const auto tensor = model_.tensors.find(variable.name());
    if (weights_.empty() && tensor != model_.tensors.end() && tensor->second.isHere)
      refuse(variable, "the model has its elements, the plan takes them from " + file +
                           "; if that was asked for, say so by --weights " + file);
    std::error_code error;
    const fs::path folder = fs::path(file).parent_path();
    if (!weights_.empty() &&
        !(fs::is_directory(weights_, error) ? fs::equivalent(folder.empty() ? "." : folder, weights_, error)
                                            : isSame(file, weights_)))
      refuse(variable, "the plan takes it from " + file + ", not from --weights " + weights_);
    requireRange(variable, placeInSafetensors(variable, file));
    givenFiles_.insert(file);
  }

  std::string filesText() const {
    std::string text;
    for (const std::string &file : givenFiles_)
      text += (text.empty() ? "" : " and ") + fs::path(file).filename().string();
    return text + (weights_.empty() ? ", which the plan names and the model does not, " : ", as --weights says, ");
  }

  static void requireRange(const proto::Variable &variable, const Tensor &place) {
    const auto &range = variable.source().range();
    if (range.offset() != place.offset || range.length() != place.length)
      refuse(variable, "it lies at bytes " + std::to_string(place.offset) + " to " +
                           std::to_string(place.offset + place.length) + " of " + place.file + ", the plan takes " +
                           std::to_string(range.offset()) + " to " + std::to_string(range.offset() + range.length()));
  }

  /// Found by the variable's name, or by another of a tied weight.
  Tensor placeInSafetensors(const proto::Variable &variable, const std::string &path) {
    const auto [it, isNew] = headers_.try_emplace(path);
    if (isNew) {
      const std::string header = import::safetensorsHeader(*import::InputFile::open(path));
      it->second.bytes = header.size();
      if (header.size() > 8)
        it->second.tensors = Json::parse(header.substr(8), nullptr, /*allow_exceptions=*/false);
    }
    std::vector<std::string> names = {variable.name()};
    names.insert(names.end(), variable.aliases().begin(), variable.aliases().end());
    for (const std::string &name : names)
      if (const auto found = it->second.tensors.find(name); found != it->second.tensors.end())
        return placeOf(*found, it->second.bytes, variable, path);
    for (const std::string &name : names)
      if (const Json *found = byPrefix(it->second.tensors, name))
        return placeOf(*found, it->second.bytes, variable, path);
    // A parameter that the exporter renamed, and the weights, too: the initializer of the model has its elements.
    if (holdsGiven(plan_, variable, model_, planFolder_))
      return {.dtype = dtypeFromNumber(variable.dtype()),
              .file = path,
              .offset = variable.source().range().offset(),
              .length = variable.source().range().length()};
    refuse(variable, path + " has no tensor of that name");
  }

  /// Of the tensors whose name differs by a prefix with a dot, the one that shares most.
  static const Json *byPrefix(const Json &tensors, const std::string &name) {
    const Json *found = nullptr;
    size_t most = 0;
    for (const auto &[key, entry] : tensors.items())
      if ((key.ends_with("." + name) || name.ends_with("." + key)) && key.size() > most) {
        most = key.size();
        found = &entry;
      }
    return found;
  }

  static Tensor placeOf(const Json &entry, uint64_t headerBytes, const proto::Variable &variable,
                        const std::string &path) {
    const std::optional<DType> dtype = dtypeFromNumber(variable.dtype());
    const std::string &stored = variable.source().range().dtype(); // of fewer bits, or empty
    try {
      if (!dtype || entry.at("dtype") != (stored.empty() ? safetensorsName(*dtype) : stored) ||
          entry.at("shape") != std::vector<int64_t>(variable.shape().begin(), variable.shape().end()))
        refuse(variable, path + " has it with another type or shape");
      const auto begin = entry.at("data_offsets").at(0).get<uint64_t>(),
                 end = entry.at("data_offsets").at(1).get<uint64_t>();
      return {.dtype = dtype, .file = path, .offset = headerBytes + begin, .length = end - begin};
    } catch (const Json::exception &) {
      refuse(variable, path + " is no safetensors file");
    }
  }

  void requireDrawn(const proto::Variable &variable) {
    const proto::Source &source = variable.source();
    const auto rule = model_.drawn.find(variable.name());
    if (rule == model_.drawn.end()) {
      if (!source.has_missing())
        refuse(variable, "the model has neither its elements nor a rule to draw them, the plan has");
      return;
    }
    const Drawn &drawn = rule->second;
    if (drawn.rule == "zeros" || drawn.rule == "ones") {
      if (!source.has_fill() || source.fill() != (drawn.rule == "ones" ? 1 : 0))
        refuse(variable, "all elements are " + drawn.rule + " by deepstatic.init, the plan has something else");
      return;
    }
    // A uniform distribution of deviation d reaches sqrt(3) d to each side.
    const double width = drawn.rule == "uniform" ? std::sqrt(3.0) * drawn.deviation : drawn.deviation;
    const auto &random = source.random();
    if (!source.has_random() || random.distribution() != drawn.rule || random.mean() != drawn.mean ||
        random.deviation() != width)
      refuse(variable, "it is drawn by deepstatic.init from a " + drawn.rule + " distribution that is not the plan's");
  }

  std::string weightFile(uint32_t index) const {
    return (fs::path(planFolder_) / plan_.weight_files(int(index)).path()).lexically_normal().string();
  }

  /// By place, or by the bytes where a copy lies elsewhere.
  bool isSame(const std::string &a, const std::string &b) {
    std::error_code error;
    if (a == b || fs::equivalent(a, b, error))
      return true;
    const auto [it, isNew] = same_.try_emplace({a, b}, false);
    if (isNew)
      it->second = sha256OfFile(a) == sha256OfFile(b);
    return it->second;
  }

  struct Header {
    uint64_t bytes = 0;
    Json tensors;
  };

  const proto::Plan &plan_;
  const ModelFile &model_;
  const std::string weights_, planFolder_;
  std::set<std::string> givenFiles_;
  std::map<std::string, Header> headers_; // by file
  std::map<std::pair<std::string, std::string>, bool> same_;
};

} // namespace

/// The elements of a matrix, columns first.
static std::string transposed(const std::string &elements, const proto::Variable &matrix) {
  const auto rows = size_t(matrix.shape(0)), columns = size_t(matrix.shape(1));
  const size_t width = rows * columns == 0 ? 0 : elements.size() / (rows * columns);
  std::string result;
  for (size_t column = 0; column < columns; ++column)
    for (size_t row = 0; row < rows; ++row)
      result.append(elements, (row * columns + column) * width, width);
  return result;
}

bool isGiven(const proto::Plan &plan, const proto::Variable &variable) {
  const proto::Source &source = variable.source();
  return source.has_range() && !plan.weight_files(int(source.range().file())).header_sha256().empty();
}

bool holdsGiven(const proto::Plan &plan, const proto::Variable &variable, const ModelFile &model,
                const std::string &planFolder) {
  const auto &range = variable.source().range();
  if (!range.dtype().empty() && !isNarrowFloat(DType(variable.dtype()))) // widened
    return false;
  const auto bytesOf = [](const std::string &path, uint64_t offset, uint64_t length) {
    std::string bytes(length, '\0');
    import::InputFile::open(path)->read(offset, bytes);
    return bytes;
  };
  const fs::path file = fs::path(planFolder) / plan.weight_files(int(range.file())).path();
  const std::string wanted = bytesOf(file.lexically_normal().string(), range.offset(), range.length());
  const std::string turned = variable.shape_size() == 2 ? transposed(wanted, variable) : wanted;
  return std::ranges::any_of(model.tensors, [&](const auto &entry) {
    const Tensor &tensor = entry.second;
    if (!tensor.isHere || tensor.length != wanted.size())
      return false;
    const std::string has = tensor.file.empty() ? tensor.literal : bytesOf(tensor.file, tensor.offset, tensor.length);
    return has == wanted || has == turned;
  });
}

Claim requireFirstValues(const proto::Plan &plan, const ModelFile &model, const Places &places,
                         const std::string &planFolder) {
  return FirstValues(plan, model, places, planFolder).require();
}

} // namespace ds::sources
