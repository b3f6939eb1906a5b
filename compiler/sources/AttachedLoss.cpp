//===- AttachedLoss.cpp - whether a plan's loss is the one that was attached //
#include "compiler/sources/AttachedLoss.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Crc32c.h"
#include "core/Error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
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
    if (loss.kind == LossKind::MultiLabel)
      return loss.posWeight.empty() ? requireBinary() : requireWeightedBinary(loss);
    if (!loss.classWeights.empty())
      return requireWeighted(loss);
    const proto::ReferenceOp &entropy = only("train.cross_entropy");
    const std::string reduction = textOf(entropy, "reduction");
    if (reduction != "mean" && reduction != "sum")
      refuse("its cross entropy is no mean or sum");
    if (numberOf(entropy, "ignore_index") != double(loss.ignoreIndex))
      refuse("label " + std::to_string(int64_t(numberOf(entropy, "ignore_index"))) + " is ignored, not " +
             std::to_string(loss.ignoreIndex));
    requireLabels(entropy.operands(1), loss);
    if (entropyOf(loss) != entropy.results(0))
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

  /// What smoothing leaves of the loss: of entropy (1 - s) + mean over classes s.
  uint32_t entropyOf(const AttachedLoss &loss) const {
    const double smoothing = loss.labelSmoothing;
    if (smoothing == 0)
      return skipped(added(), {"train.cast"});
    const proto::ReferenceOp &sum = made(skipped(added(), {"train.cast"}), "train.add");
    const proto::ReferenceOp &kept = made(sum.operands(0), "train.mul"), &mixed = made(sum.operands(1), "train.mul");
    const auto weight = [&](const proto::ReferenceOp &product) {
      return numberOf(made(skipped(product.operands(1), {"train.cast"}), "train.constant"), "value");
    };
    if (float(weight(kept)) != float(1 - smoothing) || float(weight(mixed)) != float(smoothing))
      refuse("its label smoothing is not " + std::to_string(smoothing));
    return kept.operands(0);
  }

  uint32_t madeOf(uint32_t value, std::string_view by, int operand = 0) const {
    return made(skipped(value, {"train.cast", "train.reshape"}), by).operands(operand);
  }

  /// The sum of weight * -log p of labels that count, by the sum of their weights.
  void requireWeighted(const AttachedLoss &loss) const {
    const proto::ReferenceOp &mean = made(entropyOf(loss), "train.div");
    const proto::ReferenceOp &losses = made(madeOf(mean.operands(0), "train.reduce_sum"), "train.mul");
    const uint32_t weights = madeOf(mean.operands(1), "train.reduce_sum");
    if (losses.operands(1) != weights)
      refuse("it is not divided by the sum of the weights that it has");
    const proto::ReferenceOp &kept = made(weights, "train.select");
    const proto::ReferenceOp &ignored = made(madeOf(kept.operands(0), "train.not"), "train.equal");
    if (numberOf(made(skipped(ignored.operands(1), {"train.reshape"}), "train.constant"), "value") !=
        double(loss.ignoreIndex))
      refuse("a label other than " + std::to_string(loss.ignoreIndex) + " is ignored");
    requireLabels(ignored.operands(0), loss);
    const uint32_t picked = madeOf(losses.operands(0), "train.neg");
    const uint32_t row = skipped(madeOf(picked, "train.gather_elements", 1), {"train.reshape"});
    madeOf(madeOf(picked, "train.gather_elements"), "train.log_softmax");
    requireLabels(madeOf(madeOf(row, "train.select", 1), "train.select", 2), loss);
    const proto::ReferenceOp &gather = made(kept.operands(1), "train.gather");
    if (skipped(gather.operands(1), {"train.reshape"}) != row)
      refuse("weights are not those of its labels");
    requireTable(made(skipped(gather.operands(0), {"train.broadcast"}), "train.constant"), gather.results(0),
                 loss.classWeights);
  }

  /// A constant that is one number throughout says that, and another one the CRC of its elements.
  void requireTable(const proto::ReferenceOp &table, uint32_t like, const std::vector<double> &weights) const {
    const bool isDouble = plan_.reference().values(int(like)).dtype() == proto::DTYPE_F64;
    const std::vector<float> singles(weights.begin(), weights.end());
    const proto::Attribute *crc = attributeOf(table, "crc32c");
    const bool isSame =
        crc ? uint32_t(crc->integer()) ==
                  (isDouble ? crc32c(std::as_bytes(std::span(weights))) : crc32c(std::as_bytes(std::span(singles))))
            : std::ranges::all_of(singles, [&](float each) { return each == float(numberOf(table, "value")); });
    if (!isSame)
      refuse("its weights are not those of deepstatic.loss");
  }

  /// The mean of max(x, 0) + log1p(exp(-|x|)) - x * label.
  void requireBinary() const {
    const proto::ReferenceOp &difference = made(madeOf(added(), "train.reduce_mean"), "train.sub");
    const proto::ReferenceOp &softplus = made(difference.operands(0), "train.add");
    const proto::ReferenceOp &product = made(difference.operands(1), "train.mul");
    requireInput(skipped(product.operands(1), {"train.cast"}));
    const uint32_t logits = product.operands(0);
    requireSoftplus(softplus, logits);
  }

  void requireSoftplus(const proto::ReferenceOp &softplus, uint32_t of) const {
    const uint32_t power = madeOf(madeOf(softplus.operands(1), "train.log1p"), "train.exp");
    if (madeOf(softplus.operands(0), "train.max") != of || madeOf(madeOf(power, "train.neg"), "train.abs") != of)
      refuse("it is no binary cross entropy of one output's logits");
  }

  /// The mean of (1 - label) * x + (1 + (w - 1) * label) * softplus(-x).
  void requireWeightedBinary(const AttachedLoss &loss) const {
    const proto::ReferenceOp &sum = made(madeOf(added(), "train.reduce_mean"), "train.add");
    const proto::ReferenceOp &absent = made(sum.operands(0), "train.mul");
    const proto::ReferenceOp &present = made(sum.operands(1), "train.mul");
    const proto::ReferenceOp &rest = made(absent.operands(0), "train.sub");
    const proto::ReferenceOp &factor = made(present.operands(0), "train.add");
    const proto::ReferenceOp &more = made(factor.operands(0), "train.mul");
    for (const uint32_t one : {rest.operands(0), factor.operands(1)})
      if (numberOf(made(skipped(one, {"train.broadcast", "train.cast"}), "train.constant"), "value") != 1)
        refuse("a label is not weighed by 1 and what pos_weight is more");
    for (const uint32_t labels : {rest.operands(1), more.operands(0)})
      requireInput(skipped(labels, {"train.cast"}));
    std::vector<double> weights = loss.posWeight;
    for (double &weight : weights)
      weight -= 1;
    requireTable(made(skipped(more.operands(1), {"train.broadcast", "train.reshape"}), "train.constant"),
                 more.results(0), weights);
    const proto::ReferenceOp &softplus = made(present.operands(1), "train.add");
    const uint32_t negative = madeOf(softplus.operands(0), "train.max");
    requireSoftplus(softplus, negative);
    if (madeOf(negative, "train.neg") != absent.operands(1))
      refuse("it is no binary cross entropy of one output's logits");
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

/// The plan names it from its own folder.
static std::string nameOfFile(const AttachedLoss &loss) { return std::filesystem::path(loss.file).filename().string(); }

std::optional<Claim> requireAttachedLoss(const proto::Plan &plan, const ModelFile *model, const ConfigFile *config) {
  const std::optional<AttachedLoss> said = attachedLossOf(plan);
  if (config != nullptr && config->loss) {
    const AttachedLoss &wanted = *config->loss;
    if (!said || said->kind != wanted.kind || said->labelSmoothing != wanted.labelSmoothing ||
        said->ignoreIndex != wanted.ignoreIndex || said->classWeights != wanted.classWeights ||
        said->posWeight != wanted.posWeight || nameOfFile(*said) != nameOfFile(wanted) ||
        (!wanted.logits.empty() && wanted.logits != said->logits))
      refuse("the configuration asks for another (deepstatic.loss)");
  }
  if (!said)
    return std::nullopt;
  if (!said->file.empty())
    return Claim{"attached_loss", "the loss is the graph of " + said->file + ", SHA-256 " + said->sha256};
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
