//===- MatchWeights.cpp - parameters that an exporter renamed, found by content //
#include "compiler/import/MatchWeights.h"

#include "compiler/import/Constant.h"
#include "compiler/import/Hazards.h"
#include "compiler/import/Types.h"
#include "compiler/import/files/Failure.h"
#include "core/WeightNames.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace ds::import {
namespace {

/// How an initializer follows from a parameter.
enum class Form { Same, Reshaped, Transposed, Repeated, Rows, PlusOne };

struct Match {
  std::string parameter;
  Form form = Form::Same;
  std::vector<int64_t> rows = {}; // Form::Rows
};

struct Elements {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<char> bytes;
};

bool isTransposed(const Elements &a, const Elements &b) {
  if (a.shape.size() != 2 || b.shape != Shape{a.shape[1], a.shape[0]})
    return false;
  const size_t width = size_t(byteSize(a.dtype)), rows = size_t(a.shape[0]), columns = size_t(a.shape[1]);
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < columns; ++k)
      if (!std::equal(&a.bytes[(i * columns + k) * width], &a.bytes[(i * columns + k) * width] + width,
                      &b.bytes[(k * rows + i) * width]))
        return false;
  return true;
}

/// Whether `wide` is `thin` repeated along dimensions of size 1.
bool isRepeated(const Elements &wide, const Elements &thin) {
  if (wide.shape.size() != thin.shape.size() || wide.shape == thin.shape)
    return false;
  for (size_t i = 0; i < wide.shape.size(); ++i)
    if (thin.shape[i] != wide.shape[i] && thin.shape[i] != 1)
      return false;
  return Constant::dense(thin.dtype, thin.shape, thin.bytes).bytes(wide.shape) == wide.bytes;
}

/// The rows of `table` [N, D] that `part` [.., D] consists of, as an embedding of constant indices does; nothing where
/// one is no row, or several rows are equal.
std::optional<std::vector<int64_t>> rowsOf(const Elements &part, const Elements &table) {
  if (table.shape.size() != 2 || part.shape.empty() || part.shape.back() != table.shape[1] || part.bytes.empty())
    return std::nullopt;
  const size_t row = table.bytes.size() / size_t(table.shape[0]);
  std::map<std::string_view, int64_t> numbers;
  for (int64_t i = 0; i < table.shape[0]; ++i) {
    const auto [it, isNew] = numbers.try_emplace({&table.bytes[size_t(i) * row], row}, i);
    it->second = isNew ? i : -1;
  }
  std::vector<int64_t> rows;
  for (size_t at = 0; at < part.bytes.size(); at += row) {
    const auto found = numbers.find({&part.bytes[at], row});
    if (found == numbers.end() || found->second < 0)
      return std::nullopt;
    rows.push_back(found->second);
  }
  return rows;
}

/// Whether a norm's scale is written as what it adds to 1.
bool isPlusOne(const Elements &sum, const Elements &part) {
  if (sum.dtype != DType::F32 || sum.shape != part.shape)
    return false;
  for (size_t at = 0; at < sum.bytes.size(); at += sizeof(float)) {
    float whole = 0, rest = 0;
    std::memcpy(&whole, &sum.bytes[at], sizeof whole);
    std::memcpy(&rest, &part.bytes[at], sizeof rest);
    if (whole != 1 + rest)
      return false;
  }
  return true;
}

std::optional<Match> compare(const Elements &initializer, const Elements &parameter, const std::string &name) {
  if (initializer.dtype != parameter.dtype)
    return std::nullopt;
  if (initializer.bytes == parameter.bytes)
    return Match{.parameter = name, .form = initializer.shape == parameter.shape ? Form::Same : Form::Reshaped};
  if (initializer.bytes.size() == parameter.bytes.size() && isTransposed(parameter, initializer))
    return Match{.parameter = name, .form = Form::Transposed};
  if (isRepeated(initializer, parameter))
    return Match{.parameter = name, .form = Form::Repeated};
  if (const auto rows = rowsOf(initializer, parameter))
    return Match{.parameter = name, .form = Form::Rows, .rows = *rows};
  if (isPlusOne(initializer, parameter))
    return Match{.parameter = name, .form = Form::PlusOne};
  return std::nullopt;
}

void addInts(onnx::NodeProto &node, const char *name, const std::vector<int64_t> &values) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(7); // INTS
  attribute.mutable_ints()->Assign(values.begin(), values.end());
}

class Matcher {
public:
  Matcher(const ScannedModel &model, FlatGraph &graph, Metadata &metadata, WeightFiles &files, std::string weights)
      : model_(model), graph_(graph), metadata_(metadata), files_(files), weights_(std::move(weights)),
        tensors_(files.safetensors()) {
    const auto &initializers = model.proto.graph().initializer();
    for (int i = 0; i < initializers.size(); ++i)
      initializers_[initializers[i].name()] = i;
    for (const onnx::ValueInfoProto &value : model.proto.graph().value_info())
      if (const std::string *from = findEntry(value.metadata_props(), "pkg.onnxscript.optimizer.folded_from"))
        foldedFrom_[value.name()] = {parametersIn(*from), from->find(',') == std::string::npos};
  }

  std::string run() {
    for (FlatNode &node : graph_.nodes)
      matchNode(node);
    for (FlatNode &node : graph_.nodes)
      restoreBias(node);
    refuseLost();
    graph_.nodes.insert(graph_.nodes.begin(), made_.begin(), made_.end());
    for (const std::string &name : found_)
      metadata_.values.insert_or_assign(name, ValueNote{.kind = "PARAMETER", .persistent = true});
    return std::to_string(found_.size()) + " parameters of a model that its exporter rewrote were found in " +
           weights_ + " by their values and keep the names and layouts that they have there";
  }

private:
  /// Quoted names of a list that are parameters of the module.
  std::vector<std::string> parametersIn(const std::string &list) const {
    std::vector<std::string> names;
    for (size_t at = list.find('\''); at != std::string::npos;) {
      const size_t end = list.find('\'', at + 1);
      if (end == std::string::npos)
        break;
      std::string name = list.substr(at + 1, end - at - 1);
      if (isTarget(name))
        names.push_back(std::move(name));
      at = list.find('\'', end + 1);
    }
    return names;
  }

  bool isTarget(const std::string &name) const {
    return std::ranges::find(metadata_.parameterTargets, name) != metadata_.parameterTargets.end();
  }

  /// Parameters among the arguments of the call that a node came from.
  std::vector<std::string> parametersOf(const FlatNode &node) const {
    std::vector<std::string> names;
    const FxCall call = fxCallOf(*node.proto);
    for (const std::string &argument : call.arguments) // such as "%p_x" and "[%p_x"
      for (size_t at = argument.find('%'); at != std::string::npos; at = argument.find('%', at + 1)) {
        size_t end = at + 1;
        while (end < argument.size() &&
               (std::isalnum(static_cast<unsigned char>(argument[end])) || argument[end] == '_'))
          ++end;
        if (const auto found = metadata_.placeholders.find(argument.substr(at + 1, end - at - 1));
            found != metadata_.placeholders.end())
          names.push_back(found->second);
      }
    return names;
  }

  const Elements &elementsOf(const std::string &initializer) {
    auto [it, isNew] = held_.try_emplace(initializer);
    if (isNew) {
      const int index = initializers_.at(initializer);
      const onnx::TensorProto &tensor = model_.proto.graph().initializer(index);
      Elements &elements = it->second;
      elements.dtype = *dtypeFromOnnx(tensor.data_type());
      elements.shape = {tensor.dims().begin(), tensor.dims().end()};
      elements.bytes = files_.read(
          files_.locate(tensor, model_.data[size_t(index)], elements.dtype, "initializer '" + initializer + "'"),
          elements.dtype);
    }
    return it->second;
  }

  /// A tensor of the weight file as `dtype`; nothing where it has another type.
  std::optional<Elements> stored(const std::string &name, DType dtype) {
    const auto found = tensors_.find(name);
    const std::optional<DType> has = found == tensors_.end() ? std::nullopt : dtypeFromOnnx(found->second.first);
    if (!has || *has != dtype)
      return std::nullopt;
    const Shape &shape = found->second.second;
    return Elements{dtype, shape, files_.read(files_.locateInSafetensors(name, name, dtype, shape), dtype)};
  }

  std::vector<Match> matches(const std::string &initializer, const std::vector<std::string> &names) {
    std::vector<Match> result;
    std::set<std::string> seen;
    for (const std::string &name : names)
      if (seen.insert(name).second)
        if (const std::optional<Elements> values = stored(name, elementsOf(initializer).dtype))
          if (const std::optional<Match> match = compare(elementsOf(initializer), *values, name))
            result.push_back(*match);
    return result;
  }

  /// Tensors of the file with the values of an initializer, whatever their names.
  std::vector<Match> matchesOfAll(const std::string &initializer) {
    const Elements &elements = elementsOf(initializer);
    std::vector<std::string> names;
    for (const auto &[name, type] : tensors_)
      if (elementCount(type.second) == elementCount(elements.shape) && !isOwnersName(name))
        names.push_back(name);
    std::vector<Match> found = matches(initializer, names);
    std::erase_if(found, [](const Match &match) { return match.form == Form::PlusOne || match.form == Form::Rows; });
    return found;
  }

  /// Whether takeName gave a tensor this name, beside its own.
  bool isOwnersName(const std::string &name) const {
    return std::ranges::any_of(owners_, [&](const auto &entry) { return entry.second == name; });
  }

  /// Parameters of the very module in which a node stands.
  std::vector<std::string> parametersAt(const FlatNode &node) const {
    const std::string *scopes = findEntry(node.proto->metadata_props(), "pkg.torch.onnx.name_scopes");
    std::vector<std::string> names, path;
    for (size_t at = scopes ? scopes->find('\'') : std::string::npos; at != std::string::npos;) {
      const size_t end = scopes->find('\'', at + 1);
      if (end == std::string::npos)
        break;
      path.push_back(scopes->substr(at + 1, end - at - 1));
      at = scopes->find('\'', end + 1);
    }
    if (path.size() < 2)
      return names;
    const std::string prefix = path[path.size() - 2] + "."; // the last is the call
    for (const std::string &target : metadata_.parameterTargets)
      if (target.starts_with(prefix) && target.find('.', prefix.size()) == std::string::npos)
        names.push_back(target);
    return names;
  }

  bool isFloatInitializer(const std::string &name) const {
    const auto found = initializers_.find(name);
    if (found == initializers_.end())
      return false;
    const std::optional<DType> dtype = dtypeFromOnnx(model_.proto.graph().initializer(found->second).data_type());
    return dtype && ds::isFloat(*dtype);
  }

  /// What the node's inputs are parameters of; inputs that are constants stay.
  void matchNode(FlatNode &node) {
    const std::vector<std::string> called = parametersOf(node);
    std::map<std::string, size_t> uses; // of one initializer, among the node's inputs so far
    for (int i = 0; i < node.proto->input_size(); ++i) {
      const std::string name = node.proto->input(i);
      if (!isFloatInitializer(name))
        continue;
      if (const std::optional<Match> match = matchOf(node, name, called, uses[name]++))
        setInput(node, i, valueOf(*match, elementsOf(name).shape));
    }
  }

  /// By the call that the node came from, its module, what the initializer was folded from, its name; last by values
  /// alone.
  std::optional<Match> matchOf(const FlatNode &node, const std::string &initializer,
                               const std::vector<std::string> &called, size_t use) {
    const auto folded = foldedFrom_.find(initializer);
    const bool isFolded = folded != foldedFrom_.end();
    if (isFolded && folded->second.parameters.size() > 1) // by arithmetic
      return std::nullopt;
    std::vector<std::vector<std::string>> hints = {called, parametersAt(node)};
    if (isFolded)
      hints.push_back(folded->second.parameters);
    if (isTarget(initializer) || metadata_.parameterTargets.empty())
      hints.push_back({initializer});
    std::vector<Match> found;
    std::vector<std::string> absent; // of the weights, which may have them under other names
    for (const std::vector<std::string> &names : hints) {
      if (found.empty())
        found = matches(initializer, names);
      if (!isFolded) // nothing was computed: ones are a scale, and no bias of zeros plus one
        std::erase_if(found, [](const Match &match) { return match.form == Form::PlusOne; });
      for (const std::string &name : names)
        if (!tensors_.count(name))
          absent.push_back(name);
    }
    const bool mayBeRenamed = isFolded ? folded->second.isAlone : isTarget(initializer);
    const bool byValues = metadata_.parameterTargets.empty() || (!absent.empty() && mayBeRenamed);
    const bool search = found.empty() && byValues && elementCount(elementsOf(initializer).shape) > 1;
    if (search)
      found = matchesOfAll(initializer);
    if (found.empty())
      return std::nullopt;
    if (search && found.size() == 1 && !metadata_.parameterTargets.empty())
      takeName(found[0], isFolded ? folded->second.parameters[0] : initializer);
    if (found.size() > 1 && found.size() != countUses(node, initializer))
      refuseAmbiguous(node, initializer, found);
    const Match &match = found[found.size() == 1 ? 0 : use];
    if (std::ranges::find(called, match.parameter) == called.end())
      for (const std::string &name : absent) // tied, and the weights have its other name
        ties_.insert(name);
    return match;
  }

  /// A tensor that the weights call by no name of the module is the parameter that it was found to be.
  void takeName(Match &match, const std::string &parameter) {
    if (isTarget(match.parameter))
      return;
    const auto [owner, isNew] = owners_.try_emplace(match.parameter, parameter);
    if (owner->second != parameter)
      throw Failure("'" + owner->second + "' and '" + parameter + "' of the model have the values of one tensor of " +
                    weights_ + ", '" + match.parameter + "', and nothing says whose it is; export with optimize=False");
    if (isNew) {
      files_.addName(parameter, match.parameter);
      tensors_[parameter] = tensors_.at(match.parameter);
    }
    match.parameter = parameter;
  }

  static size_t countUses(const FlatNode &node, const std::string &initializer) {
    return size_t(std::ranges::count(node.proto->input(), initializer));
  }

  [[noreturn]] void refuseAmbiguous(const FlatNode &node, const std::string &initializer,
                                    const std::vector<Match> &found) const {
    std::vector<std::string> names;
    for (const Match &match : found)
      names.push_back("'" + match.parameter + "'");
    throw Failure(describe(node) + " reads '" + initializer + "', whose values " + std::to_string(found.size()) +
                  " tensors of " + weights_ + " have: " + firstNames(names) +
                  ", and nothing in the model says which; export with optimize=False");
  }

  void setInput(FlatNode &node, int i, const std::string &name) {
    if (node.proto->input(i) == name)
      return;
    onnx::NodeProto &copy = graph_.inlined.emplace_back(*node.proto);
    copy.set_input(i, name);
    node.proto = &copy;
  }

  /// The parameter in the form that a node reads: a value of a node of ours, made once.
  std::string valueOf(const Match &match, const Shape &shape) {
    found_.insert(match.parameter);
    if (match.form == Form::Same)
      return match.parameter;
    if (match.form == Form::Transposed)
      return made("Transpose", match.parameter, match.parameter + "::transposed", 13);
    if (match.form == Form::Repeated || match.form == Form::Reshaped)
      return inShape(match.parameter, shape, match.form == Form::Repeated);
    if (match.form == Form::PlusOne)
      return plusOne(match.parameter);
    return gathered(match, shape);
  }

  std::string plusOne(const std::string &parameter) {
    onnx::NodeProto one, sum;
    onnx::AttributeProto &value = *one.add_attribute();
    value.set_name("value_float");
    value.set_type(1); // FLOAT
    value.set_f(1);
    sum.add_input(parameter);
    sum.add_input(made("Constant", "", "::one", 13, one));
    return made("Add", "", parameter + "::plus1", 13, sum);
  }

  /// Rows of a parameter by indices that are known.
  std::string gathered(const Match &match, const Shape &shape) {
    std::string rows = match.parameter + "::rows";
    for (const int64_t row : match.rows)
      rows += "," + std::to_string(row);
    onnx::NodeProto indices, gather;
    addInts(indices, "value_ints", match.rows);
    gather.add_input(match.parameter);
    gather.add_input(made("Constant", "", rows + "::indices", 13, indices));
    return inShape(made("Gather", "", rows, 13, gather), shape, false);
  }

  std::string inShape(const std::string &value, const Shape &shape, bool repeats) {
    onnx::NodeProto node;
    if (!repeats) {
      addInts(node, "shape", shape);
      return made("Reshape", value, value + "::as" + toString(shape), 1, node);
    }
    onnx::NodeProto constant;
    addInts(constant, "value_ints", shape);
    const std::string dims = made("Constant", "", value + "::shape" + toString(shape), 13, constant);
    node.add_input(value);
    node.add_input(dims);
    return made("Expand", "", value + "::to" + toString(shape), 13, node);
  }

  std::string made(const char *op, const std::string &input, const std::string &output, int64_t opset,
                   onnx::NodeProto node = {}) {
    if (!outputs_.insert(output).second)
      return output;
    node.set_op_type(op);
    node.set_name(output);
    if (!input.empty())
      node.add_input(input);
    node.add_output(output);
    graph_.inlined.push_back(std::move(node));
    made_.push_back({&graph_.inlined.back(), opset});
    return output;
  }

  /// addmm(bias, x, w) and convolution(x, w, bias) are written without a bias of zeros.
  void restoreBias(FlatNode &node) {
    const std::string &op = node.proto->op_type();
    if ((op != "Gemm" && op != "Conv") || node.proto->input_size() != 2)
      return;
    for (const std::string &name : parametersOf(node)) {
      const auto type = tensors_.find(name);
      if (found_.count(name) || type == tensors_.end() || type->second.second.size() != 1)
        continue;
      const std::optional<Elements> bias = stored(name, DType::F32);
      if (!bias || std::ranges::any_of(bias->bytes, [](char byte) { return byte != 0; }))
        continue;
      onnx::NodeProto &copy = graph_.inlined.emplace_back(*node.proto);
      copy.add_input(name);
      node.proto = &copy;
      found_.insert(name);
      return;
    }
  }

  /// A parameter that the graph depends on, and that no node reads. Of equal ones, whose nodes may have been merged
  /// and their notes with them, all must be there.
  void refuseLost() {
    std::map<std::string, std::string> lost; // parameter -> where it went
    for (const FlatNode &node : graph_.nodes) {
      for (const std::string &name : node.proto->input())
        if (const auto folded = foldedFrom_.find(name); folded != foldedFrom_.end() && isFloatInitializer(name))
          for (const std::string &parameter : folded->second.parameters)
            lost.try_emplace(parameter, "'" + name + "' was computed from it");
      for (const std::string &parameter : parametersOf(node))
        lost.try_emplace(parameter, describe(node) + " lacks it");
    }
    for (const std::string &name : metadata_.parameterTargets)
      if (!found_.count(name))
        if (const std::string twin = foundTwinOf(name); !twin.empty())
          lost.try_emplace(name, "'" + twin + "' has the same values, and may stand for both");
    for (const std::string &name : found_)
      lost.erase(name);
    std::erase_if(lost, [&](const auto &entry) { return tiedToFound(entry.first); });
    if (lost.empty())
      return;
    std::vector<std::string> names;
    for (const auto &[name, where] : lost)
      names.push_back("'" + name + "'");
    throw Failure("the exporter optimized this model, and " + std::to_string(lost.size()) + " of " +
                  std::to_string(metadata_.parameterTargets.size()) + " parameters are not in it with the values of " +
                  weights_ + ": " + firstNames(names) + " (" + lost.begin()->second +
                  "); give the weights that this very model was exported with, or export with optimize=False" +
                  saysMore("optimized-export"));
  }

  /// A parameter that was found and has the same values.
  std::string foundTwinOf(const std::string &name) {
    const auto type = tensors_.find(name);
    const std::optional<DType> dtype = type == tensors_.end() ? std::nullopt : dtypeFromOnnx(type->second.first);
    if (!dtype)
      return "";
    std::optional<Elements> values;
    for (const std::string &other : found_) {
      const auto found = tensors_.find(other);
      if (found == tensors_.end() || found->second != type->second)
        continue;
      if (!values)
        values = stored(name, *dtype);
      if (const std::optional<Elements> twin = stored(other, *dtype); twin && values && twin->bytes == values->bytes)
        return other;
    }
    return "";
  }

  /// A tied parameter that the file has under its other name.
  bool tiedToFound(const std::string &name) const { return !tensors_.count(name) && ties_.count(name); }

  const ScannedModel &model_;
  FlatGraph &graph_;
  Metadata &metadata_;
  WeightFiles &files_;
  const std::string weights_;
  std::map<std::string, std::pair<int, Shape>> tensors_;
  std::map<std::string, std::string> owners_; // tensor of the weights -> parameter that has another name
  std::map<std::string, int> initializers_;   // name -> index
  struct Folded {
    std::vector<std::string> parameters;
    bool isAlone = false; // computed from nothing else
  };
  std::map<std::string, Folded> foldedFrom_; // by value
  std::map<std::string, Elements> held_;     // of initializers
  std::set<std::string> found_, outputs_, ties_;
  std::vector<FlatNode> made_;
};

/// Whether every parameter of the module that is in the graph has its name.
bool isRewritten(const ScannedModel &model, const FlatGraph &graph, const Metadata &metadata,
                 const WeightFiles &files) {
  if (isOptimized(model.proto, graph))
    return true;
  if (!metadata.parameterTargets.empty() || metadata.trainable)
    return false;
  // No exporter's notes: weights of the file under other names, as those that TorchScript folds.
  bool any = false;
  for (const onnx::TensorProto &tensor : model.proto.graph().initializer())
    any |= tensor.dims_size() >= 2 && !files.hasTensor(tensor.name()) && tensor.name().starts_with("onnx::");
  return any;
}

} // namespace

std::string matchWeights(const ScannedModel &model, FlatGraph &graph, Metadata &metadata, WeightFiles &files,
                         const std::string &weights) {
  if (!isRewritten(model, graph, metadata, files))
    return "";
  return Matcher(model, graph, metadata, files, weights).run();
}

} // namespace ds::import
