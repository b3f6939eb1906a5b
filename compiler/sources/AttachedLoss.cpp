//===- AttachedLoss.cpp - whether a plan's loss is the one that was attached //
#include "compiler/sources/AttachedLoss.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Error.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

[[noreturn]] void refuse(const std::string &why) {
  throw Error("the plan does not compute the loss that was attached: " + why);
}

/// loss_type of transformers' PreTrainedModel, by the class's name.
std::string kindOfClass(std::string_view name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  if (name == "GPT2LMHeadModel" || ends("ForCausalLM"))
    return "causal-lm";
  if (ends("ForMaskedLM"))
    return "masked-lm";
  if (ends("ForTokenClassification"))
    return "token-classification";
  const bool classifies = ends("ForSequenceClassification") || ends("ForImageClassification") ||
                          ends("ForVideoClassification") || ends("ForAudioClassification");
  return classifies ? "classification or regression" : "none";
}

/// One function of the reference program.
class Program {
public:
  Program(const proto::Plan &plan, std::string_view function) : plan_(plan), function_(function) {}

  void require(const AttachedLoss &loss) const {
    if (loss.kind == LossKind::Regression)
      return requireSquares();
    const proto::ReferenceOp &entropy = only("train.cross_entropy");
    const std::string reduction = textOf(entropy, "reduction");
    if (reduction != "mean" && reduction != "sum")
      refuse("its cross entropy is no mean or sum");
    if (numberOf(entropy, "ignore_index") != double(loss.ignoreIndex))
      refuse("label " + std::to_string(int64_t(numberOf(entropy, "ignore_index"))) + " is ignored, not " +
             std::to_string(loss.ignoreIndex));
    requireLabels(entropy.operands(1), loss);
    if (loss.labelSmoothing != 0)
      requireMixture(entropy.results(0), loss.labelSmoothing);
    else if (skipped(added(), {"train.cast"}) != entropy.results(0))
      refuse("something else than a cross entropy is the loss of " + std::string(function_));
  }

private:
  const proto::ReferenceOp *maker(uint32_t value) const { return makerOf(plan_, value); }

  const proto::ReferenceOp &made(uint32_t value, std::string_view by) const {
    const proto::ReferenceOp *op = maker(value);
    if (op == nullptr || op->op() != by)
      refuse("value " + plan_.reference().values(int(value)).name() + " of " + std::string(function_) + " is made by " +
             (op == nullptr ? "an input" : op->op()) + ", not by " + std::string(by));
    return *op;
  }

  const proto::ReferenceOp &only(std::string_view name) const {
    const proto::ReferenceOp *found = nullptr;
    for (const proto::ReferenceOp *op : opsOf(plan_, name))
      if (op->function() == function_ && op->name() == "loss") {
        if (found != nullptr)
          refuse(std::string(function_) + " has " + std::string(name) + " twice in its loss");
        found = op;
      }
    if (found == nullptr)
      refuse(std::string(function_) + " has no " + std::string(name) + " in its loss");
    return *found;
  }

  /// The value behind ops that change only its shape or type.
  uint32_t skipped(uint32_t value, std::initializer_list<std::string_view> ops) const {
    for (const proto::ReferenceOp *op = maker(value); op != nullptr; op = maker(value)) {
      bool skips = false;
      for (const std::string_view each : ops)
        skips |= op->op() == each;
      if (!skips)
        break;
      value = op->operands(0);
    }
    return value;
  }

  void requireInput(uint32_t value) const {
    const std::string &name = plan_.reference().values(int(value)).name();
    if (maker(value) != nullptr || name != attachedLabels)
      refuse("its labels are " + name + " in " + std::string(function_) + ", not the input " + attachedLabels);
  }

  /// labels, or for a causal model what stands one further to the right, and nothing that counts at the end.
  void requireLabels(uint32_t value, const AttachedLoss &loss) const {
    value = skipped(value, {"train.reshape", "train.cast"});
    if (loss.kind != LossKind::CausalLm)
      return requireInput(value);
    const proto::ReferenceOp &slice = made(value, "train.slice"), &pad = made(slice.operands(0), "train.pad");
    requireInput(skipped(pad.operands(0), {"train.cast"}));
    const bool shifts = listOf(slice, "starts") == std::vector<int64_t>{0, 1} &&
                        listOf(pad, "low") == std::vector<int64_t>{0, 0} &&
                        listOf(pad, "high") == std::vector<int64_t>{0, 1};
    if (!shifts || numberOf(pad, "value") != double(loss.ignoreIndex))
      refuse("labels are not shifted by one token, with label " + std::to_string(loss.ignoreIndex) + " at the end");
  }

  static std::vector<int64_t> listOf(const proto::ReferenceOp &op, std::string_view name) {
    const proto::Attribute *attribute = attributeOf(op, name);
    if (attribute == nullptr)
      return {};
    return {attribute->integers().values().begin(), attribute->integers().values().end()};
  }

  /// entropy (1 - s) + mean over classes s.
  void requireMixture(uint32_t entropy, double smoothing) const {
    const proto::ReferenceOp &sum = made(skipped(added(), {"train.cast"}), "train.add");
    const proto::ReferenceOp &kept = made(sum.operands(0), "train.mul"), &mixed = made(sum.operands(1), "train.mul");
    const auto weight = [&](const proto::ReferenceOp &product) {
      return numberOf(made(skipped(product.operands(1), {"train.cast"}), "train.constant"), "value");
    };
    if (kept.operands(0) != entropy || float(weight(kept)) != float(1 - smoothing) ||
        float(weight(mixed)) != float(smoothing))
      refuse("its label smoothing is not " + std::to_string(smoothing));
  }

  /// The mean of (logits - labels)^2.
  void requireSquares() const {
    const proto::ReferenceOp &mean = made(skipped(added(), {"train.cast"}), "train.reduce_mean");
    const proto::ReferenceOp &square = made(skipped(mean.operands(0), {"train.cast"}), "train.mul");
    if (square.operands(0) != square.operands(1))
      refuse("it is no mean of squares");
    requireInput(skipped(made(square.operands(0), "train.sub").operands(1), {"train.cast", "train.reshape"}));
  }

  /// What the function adds to the metric of the loss.
  uint32_t added() const {
    for (const char *kind : {"train.accumulate", "train.store"})
      for (const proto::ReferenceOp *op : opsOf(plan_, kind))
        if (op->function() == function_ && op->variables_size() == 1 &&
            plan_.variables(int(op->variables(0))).name() == "loss")
          return op->operands(0);
    refuse(std::string(function_) + " adds nothing to the loss");
  }

  const proto::Plan &plan_;
  const std::string_view function_;
};

} // namespace

std::optional<AttachedLoss> attachedLossOf(const proto::Plan &plan) {
  using Json = nlohmann::json;
  const Json config = Json::parse(plan.config_json(), nullptr, /*allow_exceptions=*/false);
  const Json section = config.is_object() ? config.value("deepstatic", Json::object()) : Json::object();
  const auto found = section.find("loss");
  if (found == section.end() || found->is_null())
    return std::nullopt;
  return lossFromJson(*found);
}

std::optional<Claim> requireAttachedLoss(const proto::Plan &plan, const ModelFile *model, const ConfigFile *config) {
  const std::optional<AttachedLoss> said = attachedLossOf(plan);
  if (config != nullptr && config->loss) {
    const AttachedLoss &wanted = *config->loss;
    if (!said || said->kind != wanted.kind || said->labelSmoothing != wanted.labelSmoothing ||
        said->ignoreIndex != wanted.ignoreIndex || (!wanted.logits.empty() && wanted.logits != said->logits))
      refuse("the configuration asks for another (deepstatic.loss)");
  }
  if (!said)
    return std::nullopt;
  const std::string kind(name(said->kind));
  if (model != nullptr && config != nullptr && !config->loss &&
      kindOfClass(model->className).find(kind) == std::string::npos)
    refuse("it is " + kind + ", but neither the configuration asks for it nor the model's class, " +
           (model->className.empty() ? "which is unknown" : model->className));
  if (model != nullptr && !model->outputs.contains(said->logits))
    refuse("its logits are '" + said->logits + "', which is no output of the model");
  Program(plan, "microbatch").require(*said);
  Program(plan, "evaluate").require(*said);
  return Claim{"attached_loss", "the loss is " + kind + " of output '" + said->logits + "' and input '" +
                                    attachedLabels + "', put there by ds-opt"};
}

} // namespace ds::sources
