//===- MatchWeights.cpp - parameters that an exporter renamed, found by content //
#include "compiler/import/MatchWeights.h"

#include "compiler/import/Hazards.h"
#include "compiler/import/files/Failure.h"
#include "compiler/import/match/RestoredNodes.h"
#include "compiler/import/match/WeightValues.h"
#include "core/WeightNames.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ds::import {
namespace {

class Matcher {
public:
  Matcher(const ScannedModel &model, FlatGraph &graph, Metadata &metadata, WeightFiles &files, std::string weights)
      : graph_(graph), metadata_(metadata), weights_(std::move(weights)), values_(model, files), nodes_(graph) {
    findPrefix();
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
    nodes_.insert();
    std::vector<std::string> sines; // in a folder that does not say which of its tensors are trained
    for (const std::string &name : found_) {
      const bool isTable = metadata_.parameterTargets.empty() && values_.isSines(name);
      if (isTable)
        sines.push_back("'" + name + "'");
      metadata_.values.insert_or_assign(name, ValueNote{.kind = isTable ? "BUFFER" : "PARAMETER", .persistent = true});
    }
    return std::to_string(found_.size()) + " parameters of a model that its exporter rewrote were found in " +
           weights_ + " by their values and keep the names and layouts that they have there" +
           (rule_.prefix.empty() ? "" : "; " + rule_.sentence(weights_)) +
           (sines.empty()
                ? ""
                : "; not trained are tables of sines, " + firstNames(sines) + ": --trainable REGEX trains them");
  }

private:
  /// Where the weights' names lack a prefix, or have one more, each of these tensors gets the module's name, too.
  void findPrefix() {
    std::vector<std::vector<std::string>> targets;
    for (const std::string &target : metadata_.parameterTargets)
      targets.push_back({target});
    rule_ = findPrefixRule(targets, [&](const std::string &name) { return values_.has(name); });
    for (const std::string &target : metadata_.parameterTargets) {
      const std::string tensor = rule_.fileName(target);
      if (!values_.has(target) && values_.has(tensor) && renamed_.insert(tensor).second)
        values_.addName(target, tensor);
    }
  }

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

  std::vector<Match> matches(const std::string &initializer, const std::vector<std::string> &names,
                             bool moved = false) {
    std::vector<Match> result;
    std::set<std::string> seen;
    for (const std::string &name : names)
      if (seen.insert(name).second)
        if (std::optional<Match> match = values_.match(initializer, name, moved))
          result.push_back(*std::move(match));
    return result;
  }

  /// Tensors of the file with the values of an initializer, whatever their names.
  std::vector<Match> matchesOfAll(const std::string &initializer) {
    const int64_t count = elementCount(values_.shapeOf(initializer));
    std::vector<std::string> names;
    for (const auto &[name, type] : values_.tensors())
      if (elementCount(type.second) == count && !isOwnersName(name) && !renamed_.count(name))
        names.push_back(name);
    return matches(initializer, names, /*moved=*/true);
  }

  /// Whether a tensor has this name beside its own.
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

  /// What the node's inputs are parameters of; inputs that are constants stay.
  void matchNode(FlatNode &node) {
    const std::vector<std::string> called = parametersOf(node);
    std::map<std::string, size_t> uses; // of one initializer, among the node's inputs so far
    for (int i = 0; i < node.proto->input_size(); ++i) {
      const std::string name = node.proto->input(i);
      if (!values_.isFloat(name))
        continue;
      if (const std::optional<Match> match = matchOf(node, name, called, uses[name]++)) {
        found_.insert(match->parameter);
        nodes_.setInput(node, i, nodes_.valueOf(*match, values_.shapeOf(name)));
      }
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
        if (!values_.has(name))
          absent.push_back(name);
    }
    const bool mayBeRenamed = isFolded ? folded->second.isAlone : isTarget(initializer);
    const bool byValues = metadata_.parameterTargets.empty() || (!absent.empty() && mayBeRenamed);
    const bool search = found.empty() && byValues && elementCount(values_.shapeOf(initializer)) > 1;
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
    if (isNew)
      values_.addName(parameter, match.parameter);
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

  /// addmm(bias, x, w) and convolution(x, w, bias) are written without a bias of zeros.
  void restoreBias(FlatNode &node) {
    const std::string &op = node.proto->op_type();
    if ((op != "Gemm" && op != "Conv") || node.proto->input_size() != 2)
      return;
    for (const std::string &name : parametersOf(node)) {
      const auto type = values_.tensors().find(name);
      if (found_.count(name) || type == values_.tensors().end() || type->second.second.size() != 1 ||
          !values_.isZeros(name))
        continue;
      nodes_.addInput(node, name);
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
        if (const auto folded = foldedFrom_.find(name); folded != foldedFrom_.end() && values_.isFloat(name))
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
    if (!values_.has(name))
      return "";
    const auto twin = std::ranges::find_if(
        found_, [&](const std::string &other) { return values_.has(other) && values_.areEqual(name, other); });
    return twin == found_.end() ? "" : *twin;
  }

  /// A tied parameter that the file has under its other name.
  bool tiedToFound(const std::string &name) const { return !values_.has(name) && ties_.count(name); }

  FlatGraph &graph_;
  Metadata &metadata_;
  const std::string weights_;
  WeightValues values_;
  RestoredNodes nodes_;
  PrefixRule rule_;                           // how names of the weights differ
  std::set<std::string> renamed_;             // tensors that findPrefix gave the module's name
  std::map<std::string, std::string> owners_; // tensor of the weights -> parameter that has another name
  struct Folded {
    std::vector<std::string> parameters;
    bool isAlone = false; // computed from nothing else
  };
  std::map<std::string, Folded> foldedFrom_; // by value
  std::set<std::string> found_, ties_;
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
