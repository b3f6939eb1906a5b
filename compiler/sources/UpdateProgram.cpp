//===- UpdateProgram.cpp - whether a plan's update is the configuration's -===//
//
// What @update leaves in each variable is a term: an op over terms, down to constants and to what variables held before
// the step. The terms are made twice, of the plan's reference program and of the configuration, in one table in which
// equal terms have equal numbers. Whatever one of both has and the other has not is refused: an operand, a store, a
// variable. The rule of the loss scale is DeepSpeed's (deepspeed/runtime/fp16/loss_scaler.py).
//
//===----------------------------------------------------------------------===//
#include "compiler/sources/UpdateProgram.h"

#include "compiler/sources/ReferenceOps.h"
#include "compiler/sources/Settings.h"
#include "core/DType.h"
#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

using Term = uint32_t;

/// Numbers terms.
class Terms {
public:
  Term make(const std::string &head, std::vector<Term> operands = {}) {
    if (head.starts_with("global_norm")) // the order of the sums is the checker's
      std::ranges::sort(operands);
    const auto [it, isNew] = numbers_.try_emplace({head, std::move(operands)}, Term(terms_.size()));
    if (isNew)
      terms_.push_back(&it->first);
    return it->second;
  }

  /// "clip_factor(global_norm(...))"
  std::string text(Term term, int depth = 3) const {
    const auto &[head, operands] = *terms_[term];
    std::string text;
    for (const Term operand : operands)
      if (text.size() < 80)
        text += (text.empty() ? "" : ", ") + (depth == 0 ? "..." : this->text(operand, depth - 1));
    return operands.empty() ? head : head + "(" + text + (operands.size() > 4 ? ", ..." : "") + ")";
  }

  /// The innermost place at which two terms differ.
  std::pair<Term, Term> difference(Term has, Term wanted) const {
    const auto &[head, operands] = *terms_[has];
    const auto &[wantedHead, wantedOperands] = *terms_[wanted];
    if (head != wantedHead || operands.size() != wantedOperands.size() || head.starts_with("global_norm"))
      return {has, wanted};
    const auto [one, other] = std::ranges::mismatch(operands, wantedOperands);
    return one == operands.end() ? std::pair(has, wanted) : difference(*one, *other);
  }

private:
  using Key = std::pair<std::string, std::vector<Term>>;
  std::map<Key, Term> numbers_;
  std::vector<const Key *> terms_;
};

/// By variable: what a step leaves there.
using Effects = std::map<std::string, Term>;

std::string numberText(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", number);
  return buffer;
}

std::string constantHead(double value, proto::DType dtype) {
  return "constant " + numberText(value) + " " + proto::DType_Name(dtype).substr(6);
}

/// An optimizer's op, and the variables that it takes.
std::string updateHead(const std::string &optimizer, const std::vector<std::string> &variables) {
  std::string head = optimizer + " of";
  for (const std::string &variable : variables)
    head += " " + variable;
  return head;
}

/// The terms of the plan's own @update.
class OwnProgram {
public:
  OwnProgram(const proto::Plan &plan, Terms &terms) : plan_(plan), terms_(terms) {
    for (const proto::ReferenceOp &op : plan.reference().ops())
      if (op.function() == "update")
        add(op);
  }

  const Effects &effects() const { return effects_; }

private:
  void add(const proto::ReferenceOp &op) {
    const std::string name = op.op().substr(op.op().find('.') + 1);
    std::vector<Term> operands;
    for (const uint32_t operand : op.operands()) {
      const auto value = values_.find(operand);
      if (value == values_.end())
        throw Error("@update of the plan's reference program takes " + plan_.reference().values(int(operand)).name() +
                    ", which it does not make");
      operands.push_back(value->second);
    }
    const kernels::KernelRow *row = kernels::findKernel(name);
    std::vector<std::string> variables;
    for (const uint32_t variable : op.variables())
      variables.push_back(nameOf(variable));
    if (row && row->isOptimizer())
      return addUpdate(op, updateHead(name, variables), operands);
    if (name == "store")
      return leave(variables.at(0), operands.at(0));
    if (op.results().empty())
      return leave(variables.at(0), terms_.make(name, operands));
    if (name == "constant")
      values_[op.results(0)] = terms_.make(constantHead(numberOf(op, "value"), dtypeOf(op.results(0))));
    else
      values_[op.results(0)] = terms_.make(headOf(op, name, variables), operands);
  }

  /// Changes the parameter and all of its state.
  void addUpdate(const proto::ReferenceOp &op, const std::string &head, const std::vector<Term> &operands) {
    const Term update = terms_.make(head, operands);
    for (const uint32_t variable : op.variables())
      if (plan_.variables(int(variable)).kind() == proto::Variable::PARAMETER)
        return leave(nameOf(variable), update);
    throw Error("the reference program of the plan has an update of no parameter");
  }

  /// With what decides about its value; numbers of schedules are compared by what they come to (Settings.cpp).
  std::string headOf(const proto::ReferenceOp &op, std::string head, const std::vector<std::string> &variables) const {
    if (head == "cast")
      return head + " " + proto::DType_Name(dtypeOf(op.results(0))).substr(6);
    for (const std::string &variable : variables)
      head += " " + variable + (effects_.contains(variable) ? " as this step leaves it" : "");
    if (head == "learning_rate" || head == "cycled_momentum")
      return head;
    for (const proto::Attribute &attribute : op.attributes())
      head +=
          " " + (attribute.integers().values().empty() ? numberText(numberOf(op, attribute.name())) + attribute.text()
                                                       : attribute.ShortDebugString());
    return head;
  }

  void leave(const std::string &variable, Term term) {
    if (!effects_.emplace(variable, term).second)
      throw Error("the reference program of the plan changes " + variable + " twice in an update");
  }

  const std::string &nameOf(uint32_t variable) const { return plan_.variables(int(variable)).name(); }
  proto::DType dtypeOf(uint32_t value) const { return plan_.reference().values(int(value)).dtype(); }

  const proto::Plan &plan_;
  Terms &terms_;
  std::map<uint32_t, Term> values_;
  Effects effects_;
};

/// A variable that the training keeps; of a parameter it has its type and shape.
struct State {
  proto::Variable::Kind kind = proto::Variable::OPTIMIZER;
  const proto::Variable *of = nullptr;
  std::optional<proto::DType> dtype = {}; // nothing: the parameter's, or of a metric, as the model computes it
  double first = 0;
};

/// The terms and the variables that a configuration asks for.
class AskedProgram {
public:
  AskedProgram(const proto::Plan &plan, const ConfigFile &config, Terms &terms)
      : plan_(plan), config_(config), terms_(terms) {
    for (const proto::Variable &variable : plan.variables()) {
      if (variable.trainable())
        trained_.push_back(&variable);
      dtypes_[variable.name()] = variable.dtype();
    }
    build();
  }

  const Effects &effects() const { return effects_; }
  const std::map<std::string, State> &states() const { return states_; }
  size_t updates() const { return trained_.size(); }

private:
  static constexpr const char *stepName = "optimizer::step", *scaleName = "optimizer::loss_scale",
                              *cleanName = "optimizer::loss_scale_clean_steps",
                              *leftName = "optimizer::loss_scale_hysteresis";

  Term read(const std::string &variable) { return terms_.make("read " + variable); }
  Term constant(double value, proto::DType dtype) { return terms_.make(constantHead(value, dtype)); }
  Term cast(Term value, proto::DType dtype) {
    return terms_.make("cast " + proto::DType_Name(dtype).substr(6), {value});
  }
  Term either(Term condition, Term yes, Term no) { return terms_.make("select", {condition, yes, no}); }

  /// What the gradients of a parameter are summed in.
  proto::DType sumsOf(const proto::Variable &parameter) const {
    if (config_.sums == "fp32" || parameter.dtype() != proto::DTYPE_F32)
      return parameter.dtype();
    return config_.sums == "bf16" ? proto::DTYPE_BF16 : proto::DTYPE_F16;
  }

  /// What the state of a parameter is kept in.
  proto::DType momentsOf(const proto::Variable &parameter) const {
    const bool isNarrow = isNarrowFloat(DType(parameter.dtype()));
    return isNarrow && !config_.narrowMoments ? proto::DTYPE_F32 : parameter.dtype();
  }

  void build() {
    states_[stepName] = {.dtype = proto::DTYPE_I64};
    std::vector<Term> squares;
    for (const proto::Variable *parameter : trained_) {
      states_[parameter->name() + "::gradient"] = {
          .kind = proto::Variable::GRADIENT, .of = parameter, .dtype = sumsOf(*parameter)};
      squares.push_back(terms_.make("block_sum_squares 1024", {read(parameter->name() + "::gradient")}));
    }
    const Term rate = terms_.make("learning_rate", {read(stepName)}), all = terms_.make("global_norm 0", squares);
    const Term scale = cast(read(scaleName), proto::DTYPE_F64), targets = read("targets");
    const Term finite =
        terms_.make("less_equal", {all, constant(std::numeric_limits<double>::max(), proto::DTYPE_F64)});
    Term norm = config_.fp16 ? terms_.make("div", {all, scale}) : all;
    norm = config_.tokens ? terms_.make("div", {norm, targets}) : norm;
    Term factor = config_.clip > 0 ? terms_.make("clip_factor " + numberText(config_.clip), {norm})
                                   : constant(1, proto::DTYPE_F64);
    if (config_.tokens)
      factor = terms_.make("div", {factor, targets});
    if (config_.fp16)
      factor = either(finite, terms_.make("div", {factor, scale}), constant(0, proto::DTYPE_F64));
    for (const proto::Variable *parameter : trained_)
      update(*parameter, rate, factor);
    effects_[stepName] =
        config_.fp16 ? terms_.make("add", {read(stepName), cast(finite, proto::DTYPE_I64)}) : terms_.make("increment");
    metric("grad_norm", norm);
    metric("lr", rate);
    averageLoss(targets);
    if (config_.fp16)
      scaleLoss(*config_.fp16, finite);
  }

  void update(const proto::Variable &parameter, Term rate, Term factor) {
    const std::string &name = parameter.name(), &kind = config_.optimizer;
    std::string gradient = name + "::gradient";
    const auto state = [&](const char *suffix) {
      states_[name + suffix] = {.of = &parameter, .dtype = momentsOf(parameter)};
      return name + suffix;
    };
    const Group *group = groupOf(config_, name);
    group = group && group->rate != 1 ? group : nullptr;
    if (group)
      rate = terms_.make("mul", {rate, constant(group->rate, proto::DTYPE_F64)});
    std::vector<Term> operands = {rate, read(stepName), factor};
    if (config_.momentum.on)
      operands.push_back(terms_.make("cycled_momentum", {read(stepName)}));
    if (config_.delayed) {
      effects_[state("::pending")] = read(gradient);
      gradient = name + "::pending";
      states_[gradient].dtype = sumsOf(parameter);
      const char *const roles[] = {"rate", "step", "clip", "momentum"};
      for (size_t i = 0; i < operands.size(); ++i)
        operands[i] = pending(roles[i], i == 0 ? group : nullptr, operands[i]);
    }
    // An op's variables stand in the order of what they are to it: first_moment, gradient, parameter, second_moment.
    std::vector<std::string> variables = {gradient, name};
    if (kind == "adamw" || kind == "lamb" || kind == "lion")
      variables.insert(variables.begin(), state("::exp_avg"));
    if (kind == "adamw" || kind == "lamb")
      variables.push_back(state("::exp_avg_sq"));
    if (kind == "adagrad")
      variables.push_back(state("::sum"));
    if (kind == "sgd" && momentumOfSgd() != 0)
      variables.insert(variables.begin() + 1, state("::momentum_buffer"));
    effects_[name] = terms_.make(updateHead(kind, variables), operands);
  }

  double momentumOfSgd() const {
    const auto found = std::ranges::find(config_.settings, "momentum", &std::pair<std::string, double>::first);
    return found == config_.settings.end() ? 0 : found->second;
  }

  /// What an update takes from the step before instead of `value`, which this step leaves for the next one.
  Term pending(const std::string &role, const Group *group, Term value) {
    const auto [it, isNew] = pending_.try_emplace({role, group});
    if (isNew) {
      const int number = numbered_[role]++;
      it->second = "optimizer::pending_" + role + (number == 0 ? "" : "::" + std::to_string(number));
      states_[it->second] = {.dtype = role == "step" ? proto::DTYPE_I64 : proto::DTYPE_F64};
      effects_[it->second] = value;
    }
    return read(it->second);
  }

  void metric(const std::string &name, Term value) {
    states_[name] = {};
    effects_[name] = value;
  }

  /// The metric holds a sum over micro-batches; people read their mean, or that of their targets.
  void averageLoss(Term targets) {
    states_["loss"] = {};
    const proto::DType dtype = dtypes_["loss"];
    const double microbatches = double(config_.accumulation * plan::batchRanks(plan_));
    if (config_.tokens) {
      states_["targets"] = {};
      targets = dtypes_["targets"] == dtype ? targets : cast(targets, dtype);
      effects_["loss"] = terms_.make("div", {read("loss"), targets});
    } else if (microbatches != 1) {
      effects_["loss"] = terms_.make("div", {read("loss"), constant(microbatches, dtype)});
    }
  }

  void scaleLoss(const Fp16 &fp16, Term finite) {
    constexpr proto::DType f32 = proto::DTYPE_F32, i64 = proto::DTYPE_I64;
    const Term scale = read(scaleName), clean = read(cleanName), left = read(leftName);
    const Term one = constant(1, i64), all = constant(fp16.hysteresis, i64), least = constant(fp16.least, f32);
    states_[scaleName] = {.dtype = f32, .first = fp16.firstScale};
    metric("loss_scale", scale);
    const Term overflows = terms_.make("not", {finite}), skipped = cast(overflows, f32);
    metric("skipped", skipped);
    if (!fp16.isDynamic)
      return;
    states_[cleanName] = {.dtype = i64};
    states_[leftName] = {.dtype = i64, .first = fp16.hysteresis};
    // After an overflow.
    const Term shrinks = terms_.make("less_equal", {left, one});
    const Term halved = terms_.make("max", {terms_.make("mul", {scale, constant(0.5, f32)}), least});
    const Term lower = either(shrinks, halved, scale), fewer = either(shrinks, left, terms_.make("sub", {left, one}));
    // After a step without one.
    const Term due = terms_.make("equal", {clean, constant(fp16.window, i64)});
    const Term doubled = terms_.make("mul", {scale, constant(2, f32)});
    const Term higher = either(due, terms_.make("min", {doubled, constant(0x1p127, f32)}), scale);
    const Term counted = either(due, one, terms_.make("add", {clean, one}));
    const Term restored = fp16.consecutive ? all : either(due, all, left);
    effects_[scaleName] = either(finite, higher, lower);
    effects_[cleanName] = either(finite, counted, constant(0, i64));
    effects_[leftName] = either(finite, restored, fewer);
    // 2 where nothing is left to do about an overflow.
    const Term stuck = terms_.make("and", {shrinks, terms_.make("less_equal", {scale, least})});
    effects_["skipped"] = terms_.make("add", {skipped, cast(terms_.make("and", {stuck, overflows}), f32)});
  }

  const proto::Plan &plan_;
  const ConfigFile &config_;
  Terms &terms_;
  std::vector<const proto::Variable *> trained_;
  std::map<std::string, proto::DType> dtypes_;
  Effects effects_;
  std::map<std::string, State> states_;
  std::map<std::pair<std::string, const Group *>, std::string> pending_;
  std::map<std::string, int> numbered_;
};

void requireEqual(const Effects &has, const Effects &wanted, const Terms &terms) {
  for (const auto &[variable, term] : wanted) {
    const auto found = has.find(variable);
    if (found == has.end())
      throw Error("the reference program of the plan never updates " + variable + "; the configuration asks for " +
                  terms.text(term));
    if (found->second == term)
      continue;
    const auto [one, other] = terms.difference(found->second, term);
    throw Error("the update of " + variable + " in the plan takes " + terms.text(one) +
                " where the configuration asks for " + terms.text(other));
  }
  for (const auto &[variable, term] : has)
    if (!wanted.contains(variable))
      throw Error("the reference program of the plan updates " + variable + " by " + terms.text(term) +
                  ", which the configuration does not ask for");
}

void requireState(const proto::Plan &plan, const proto::Variable &variable, const State &state) {
  const auto refuse = [&](const std::string &why) {
    throw Error(variable.name() + " is state of the training, " + why);
  };
  if (variable.kind() != state.kind)
    refuse("but the plan says that it is of kind " + proto::Variable::Kind_Name(variable.kind()) +
           ", which checkpoints would not restore");
  const proto::Variable *of = variable.has_of() ? &plan.variables(int(variable.of())) : nullptr;
  if (of != state.of)
    refuse("of " + (state.of ? state.of->name() : "no parameter") + ", but the plan says of " +
           (of ? of->name() : "none"));
  const std::optional<proto::DType> dtype = state.of && !state.dtype ? state.of->dtype() : state.dtype;
  const bool sameShape = state.of ? std::ranges::equal(variable.shape(), state.of->shape()) : variable.shape().empty();
  if (dtype && variable.dtype() != *dtype)
    refuse("but the plan keeps it in " + std::string(name(DType(variable.dtype()))) + ", not in " +
           std::string(name(DType(*dtype))));
  if (!sameShape)
    refuse("but it has another shape in the plan than " + (state.of ? state.of->name() : "one number"));
  if (!variable.source().has_fill() || variable.source().fill() != state.first)
    refuse("and does not begin at " + numberText(state.first) + " in the plan");
  if (variable.trainable() || variable.persistent() || variable.aliases_size() > 0)
    refuse("but the plan says that it is trained, exported, or has other names");
}

void requireStates(const proto::Plan &plan, const std::map<std::string, State> &states) {
  std::set<std::string> found;
  for (const proto::Variable &variable : plan.variables()) {
    const auto state = states.find(variable.name());
    found.insert(variable.name());
    if (state != states.end())
      requireState(plan, variable, state->second);
    else if (variable.kind() == proto::Variable::OPTIMIZER || variable.kind() == proto::Variable::GRADIENT)
      throw Error("the plan has state " + variable.name() + ", which no update that the configuration asks for keeps");
  }
  for (const auto &[name, state] : states)
    if (!found.contains(name))
      throw Error("the plan has no " + name + ", where the update that the configuration asks for keeps its state");
}

/// Micro-batches add to gradients and metrics; what the update keeps is changed by no other function.
void requireOthersKeep(const proto::Plan &plan, const std::map<std::string, State> &states) {
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (op.function() != "update" && op.results().empty())
      for (const uint32_t number : op.variables()) {
        const proto::Variable &variable = plan.variables(int(number));
        const bool isSum =
            variable.kind() == proto::Variable::GRADIENT || variable.name() == "loss" || variable.name() == "targets";
        if (states.contains(variable.name()) && !isSum)
          throw Error(op.function() + " of the plan's reference program changes " + variable.name() +
                      ", which only its update may");
      }
}

} // namespace

const Group *groupOf(const ConfigFile &config, const std::string &parameter) {
  for (const Group &group : config.groups)
    if (std::regex_search(parameter, std::regex(group.match, std::regex::extended)))
      return &group;
  return nullptr;
}

Claim requireUpdateProgram(const proto::Plan &plan, const ConfigFile &config) {
  Terms terms;
  const AskedProgram asked(plan, config, terms);
  const OwnProgram own(plan, terms);
  requireEqual(own.effects(), asked.effects(), terms);
  requireStates(plan, asked.states());
  requireOthersKeep(plan, asked.states());
  return {"update_program", std::to_string(asked.updates()) + " updates, the step, the metrics and " +
                                std::to_string(asked.states().size()) +
                                " variables of state are operand by operand those that the configuration makes"};
}

} // namespace ds::sources
