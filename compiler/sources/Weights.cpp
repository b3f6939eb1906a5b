//===- Weights.cpp - whether a plan trains the parameters of its model ----===//
#include "compiler/sources/Weights.h"

#include "compiler/sources/Adapters.h"
#include "compiler/sources/AttachedLoss.h"
#include "compiler/sources/FirstValues.h"
#include "compiler/sources/InputLimits.h"
#include "compiler/sources/ModelFile.h"
#include "compiler/sources/ReferenceOps.h"
#include "compiler/sources/Sources.h"
#include "core/DType.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

std::string shapeText(const auto &shape) {
  std::string text = "[";
  for (const int64_t dim : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

std::string nameOf(std::optional<DType> dtype) { return dtype ? std::string(name(*dtype)) : "of an unknown type"; }

void requireType(const std::string &what, const auto &has, std::optional<DType> dtype,
                 const std::vector<int64_t> &shape) {
  const std::optional<DType> said = dtypeFromNumber(has.dtype());
  if (said != dtype || !std::ranges::equal(has.shape(), shape))
    throw Error(what + " is " + nameOf(said) + " " + shapeText(has.shape()) + " in the plan, but " + nameOf(dtype) +
                " " + shapeText(shape) + " in the model");
}

/// The type that a tensor of the model has in the plan. A float32 parameter may be kept in 16 bits: what is trained
/// where the configuration says so (Settings.h), what is frozen where its file has no more, which its first value
/// tells.
std::optional<DType> keptType(const proto::Variable &variable, const Tensor &tensor) {
  const std::optional<DType> said = dtypeFromNumber(variable.dtype());
  const bool isAsStored = variable.source().has_range() && variable.source().range().dtype().empty();
  const bool isKeptIn16 = tensor.dtype == DType::F32 && said && isNarrowFloat(*said) &&
                          (variable.trainable() || isAsStored) && variable.kind() == proto::Variable::PARAMETER;
  return isKeptIn16 ? said : tensor.dtype;
}

/// Whether --trainable or --frozen, which the plan recorded, say so; nothing where they do not.
std::optional<bool> trainedByOption(const proto::Plan &plan, const std::string &name) {
  const auto matches = [&](const std::string &pattern) {
    return std::regex_search(name, std::regex(pattern, std::regex::extended));
  };
  if (std::ranges::any_of(plan.sources().frozen(), matches))
    return false;
  if (std::ranges::any_of(plan.sources().trainable(), matches))
    return true;
  return std::nullopt;
}

void requireTies(const proto::Variable &variable, const ModelFile &model) {
  const auto tied = model.tied.find(variable.name());
  const std::set<std::string> said = {variable.aliases().begin(), variable.aliases().end()},
                              wanted = tied == model.tied.end() ? std::set<std::string>{} : tied->second;
  if (said != wanted)
    throw Error("the plan gives " + variable.name() + " " + std::to_string(said.size()) +
                " other names, the model's deepstatic.tied gives it " + std::to_string(wanted.size()) +
                "; they are not the same");
}

/// Whether a parameter that is no initializer of the model, which an exporter rewrote, is one of its module: by its
/// name, or, of a tied one whose other name the weights have, by its values.
bool isMatched(const proto::Plan &plan, const proto::Variable &variable, const ModelFile &model,
               const std::string &planFolder) {
  if (!isGiven(plan, variable))
    return false;
  return model.parameters.contains(variable.name()) || model.read.contains(variable.name()) ||
         holdsGiven(plan, variable, model, planFolder);
}

/// Whether a file that notes its parameters has one more, which its notes do not name: module paths have dots.
bool isNamedByModule(const std::string &name) {
  return name.find('.') != std::string::npos && !name.ends_with(".running_mean") && !name.ends_with(".running_var") &&
         !name.ends_with(".num_batches_tracked");
}

/// Kind and persistence of a tensor of the model. `averaged`: the running statistics that micro-batches update.
void requireKind(const proto::Plan &plan, const proto::Variable &variable, const ModelFile &model,
                 const std::set<std::string> &averaged, bool matched) {
  const std::string &name = variable.name();
  const auto note = model.notes.find(name);
  const bool isNoted = note != model.notes.end();
  const std::optional<DType> dtype = dtypeFromNumber(variable.dtype());
  const bool isPlansWord = !isNoted && !model.trainable && model.notes.empty(); // by use, which nobody derives again
  bool isParameter = isNoted       ? note->second.kind == "PARAMETER"
                     : isPlansWord ? variable.kind() == proto::Variable::PARAMETER
                                   : (model.trainable && model.trainable->contains(name)) || isNamedByModule(name);
  isParameter = (isParameter || matched || trainedByOption(plan, name).value_or(false)) && dtype && isFloat(*dtype);
  const proto::Variable::Kind wanted = isParameter ? proto::Variable::PARAMETER : proto::Variable::BUFFER;
  if (variable.kind() != wanted)
    throw Error(name + " is of kind " + proto::Variable::Kind_Name(variable.kind()) + " in the plan, but a " +
                proto::Variable::Kind_Name(wanted) + " of the model");
  const bool isExported = isParameter || averaged.contains(name) || (isNoted && note->second.persistent);
  if (variable.persistent() != isExported)
    throw Error(name + " is " + (variable.persistent() ? "" : "not ") +
                "exported with the weights by the plan, but the model says otherwise");
}

/// What the reference program reads is of the model, or state that the training keeps.
void requireKnown(const proto::Plan &plan, const std::set<std::string> &known) {
  for (const proto::ReferenceOp &op : plan.reference().ops())
    for (const uint32_t number : op.variables()) {
      const proto::Variable &variable = plan.variables(int(number));
      if (variable.kind() != proto::Variable::OPTIMIZER && variable.kind() != proto::Variable::GRADIENT &&
          !known.contains(variable.name()))
        throw Error("the reference program of the plan takes " + variable.name() + ", of kind " +
                    proto::Variable::Kind_Name(variable.kind()) +
                    ", which is neither a tensor of the model nor state of the training");
    }
}

Claim parameters(const proto::Plan &plan, const ModelFile &model, const std::string &planFolder) {
  std::set<std::string> known, averaged;
  for (const proto::ReferenceOp *op : opsOf(plan, "train.update_average"))
    averaged.insert(plan.variables(int(op->variables(0))).name());
  const Adapters adapters(plan, model);
  const bool adapts = plan.sources().lora_rank() > 0;
  size_t trained = 0, rewritten = 0;
  for (const proto::Variable &variable : plan.variables()) {
    if (adapters.contains(variable)) {
      known.insert(variable.name()), ++rewritten;
      continue;
    }
    const auto tensor = model.tensors.find(variable.name());
    const bool matched = isMatched(plan, variable, model, planFolder);
    if (variable.kind() == proto::Variable::PARAMETER && tensor == model.tensors.end() && !matched)
      throw Error("the plan has a parameter " + variable.name() + ", which the model does not have");
    if (tensor == model.tensors.end() && matched)
      known.insert(variable.name()), ++rewritten;
    if (tensor == model.tensors.end())
      continue;
    requireType(variable.name(), variable, keptType(variable, tensor->second), tensor->second.shape);
    requireTies(variable, model);
    known.insert(variable.name());
    if (model.bringsAlgorithm)
      continue;
    requireKind(plan, variable, model, averaged, matched && model.parameters.contains(variable.name()));
    std::optional<bool> wanted = trainedByOption(plan, variable.name());
    if (!wanted && adapts)
      wanted = false;
    if (!wanted && model.trainable)
      wanted = model.trainable->contains(variable.name());
    if (wanted && *wanted != variable.trainable())
      throw Error(variable.name() + " is " + (variable.trainable() ? "" : "not ") + "trained by the plan, but " +
                  (adapts ? "--lora freezes what --trainable does not name"
                          : "the model says otherwise (deepstatic.trainable)"));
    trained += variable.trainable();
  }
  if (model.trainable)
    for (const std::string &name : *model.trainable)
      if (model.read.contains(name) && !known.contains(name) && trainedByOption(plan, name).value_or(true))
        throw Error("the model's graph reads " + name + ", which is to be trained, but the plan has no such parameter");
  requireKnown(plan, known);
  return {"parameters", std::to_string(known.size() - rewritten) +
                            " parameters and buffers have the model's names, kinds, types, shapes and ties; " +
                            std::to_string(trained) + " are trained" +
                            (adapts ? ", as --lora says"
                             : model.trainable || model.bringsAlgorithm
                                 ? ", as the model says"
                                 : "; the model does not say which, so this is the plan's word")};
}

void requireTokens(const proto::Input &input, const std::string &wanted) {
  if (input.tokens() != wanted)
    throw Error("input " + input.name() + " is made of the \"" + input.tokens() + "\" token by the plan, of the \"" +
                wanted + "\" by the model (deepstatic.tokens)");
}

/// Of an attached loss, one number per row of logits; a causal model may be fed from a stream of tokens, and so are its
/// labels.
void requireAddedLabels(const proto::Plan &plan, const proto::Input &labels, LossKind kind) {
  const std::optional<DType> dtype = dtypeFromNumber(labels.dtype());
  if (!dtype || (choosesClass(kind) ? *dtype != DType::I64 : !isFloat(*dtype)) || labels.shape_size() == 0 ||
      uint64_t(labels.shape(0)) != plan.training().micro_batch_size())
    throw Error("input labels of the plan is " + nameOf(dtype) + " " + shapeText(labels.shape()) +
                ", which are no labels of a loss of kind " + std::string(name(kind)));
}

/// Whether a stream of tokens feeds an input, where the model does not say so: those of a causal model and its labels.
std::string tokensByLoss(const proto::Plan &plan, const ModelFile &model, const proto::Input &input) {
  const std::optional<AttachedLoss> loss = attachedLossOf(plan);
  const bool said = std::ranges::any_of(model.inputs, [](const auto &each) { return !each.second.tokens.empty(); });
  if (!loss || loss->kind != LossKind::CausalLm || said)
    return "";
  const auto alike = [&](const proto::Input &other) {
    return other.dtype() == proto::DTYPE_I64 && std::ranges::equal(other.shape(), input.shape());
  };
  return alike(input) && std::ranges::count_if(plan.inputs(), alike) == 2 ? "same" : "";
}

Claim inputs(const proto::Plan &plan, const ModelFile &model) {
  for (const proto::Input &input : plan.inputs()) {
    requireLimit(plan, input);
    const auto found = model.inputs.find(input.name());
    const std::optional<AttachedLoss> loss = attachedLossOf(plan);
    if (loss && input.name() == attachedLabels) {
      requireAddedLabels(plan, input, loss->kind);
      requireTokens(input, tokensByLoss(plan, model, input));
      continue;
    }
    if (found == model.inputs.end())
      throw Error("the plan has an input " + input.name() + ", which the model does not have");
    std::vector<int64_t> shape = found->second.shape;
    for (size_t i = 0; i < shape.size() && i < size_t(input.shape_size()); ++i)
      if (shape[i] < 0 || (i == 0 && shape[i] == 1 && input.shape(0) != 1)) // the micro-batch, or --dim
        shape[i] = i == 0 ? int64_t(plan.training().micro_batch_size())
                   : plan.size() > 0 && found->second.names[i] == plan.dimension() ? int64_t(plan.size())
                                                                                   : input.shape(int(i));
    requireType("input " + input.name(), input, found->second.dtype, shape);
    requireTokens(input, found->second.tokens.empty() ? tokensByLoss(plan, model, input) : found->second.tokens);
  }
  return {"inputs", std::to_string(plan.inputs_size()) +
                        " inputs have the model's names, types, shapes, limits and order of tokens"};
}

} // namespace

std::vector<Claim> requireWeights(const proto::Plan &plan, const ModelFile &model, const Places &places,
                                  const std::string &planFolder) {
  std::vector<Claim> claims = {parameters(plan, model, planFolder)};
  if (std::optional<Claim> adapters = Adapters(plan, model).require())
    claims.push_back(*std::move(adapters));
  if (!model.bringsAlgorithm) // whose initialization is a graph of its own
    claims.push_back(requireFirstValues(plan, model, places, planFolder));
  claims.push_back(inputs(plan, model));
  return claims;
}

} // namespace ds::sources
