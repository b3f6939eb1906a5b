//===- LossScale.cpp - whether a plan scales the loss as fp16 asks --------===//
//
// The rule is DeepSpeed's (deepspeed/runtime/fp16/loss_scaler.py, DynamicLossScaler), with the mistakes of its order
// mended: gradients are divided by the scale that they were multiplied by.
//
//===----------------------------------------------------------------------===//
#include "compiler/sources/LossScale.h"

#include "core/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

constexpr const char *scaleName = lossScaleName, *cleanName = "optimizer::loss_scale_clean_steps",
                     *leftName = hysteresisName;

/// Variables of @update, all scalars, and the norm of the scaled gradients.
struct State {
  std::map<std::string, double> variables;
  double norm = 0;
};

/// Computes scalars of the reference program.
class Scalars {
public:
  Scalars(const proto::Plan &plan, const State &state) : plan_(plan), state_(state) {
    for (const proto::ReferenceOp &op : plan.reference().ops())
      for (const uint32_t result : op.results())
        makers_[result] = &op;
  }

  double value(uint32_t number) const {
    const auto made = makers_.find(number);
    if (made == makers_.end())
      throw Error("the loss scale of the plan depends on an input of the model");
    const double exact = compute(*made->second);
    return plan_.reference().values(int(number)).dtype() == proto::DTYPE_F32 ? double(float(exact)) : exact;
  }

private:
  double compute(const proto::ReferenceOp &op) const {
    const std::string_view name = op.op();
    const auto x = [&](int i) { return value(op.operands(i)); };
    const auto number = [&](const char *attribute) {
      for (const proto::Attribute &one : op.attributes())
        if (one.name() == attribute)
          return one.number();
      return 0.0;
    };
    if (name == "train.read")
      if (const auto found = state_.variables.find(plan_.variables(int(op.variables(0))).name());
          found != state_.variables.end())
        return found->second;
    if (name == "train.global_norm")
      return state_.norm;
    if (name == "train.constant")
      return number("value");
    if (name == "train.loss_gradient")
      return number("scale");
    if (name == "train.cast")
      return x(0);
    if (name == "train.not")
      return x(0) == 0 ? 1 : 0;
    if (name == "train.select")
      return x(0) != 0 ? x(1) : x(2);
    if (op.operands_size() != 2)
      throw Error("the loss scale of the plan depends on " + op.op());
    return binary(name, x(0), x(1));
  }

  static double binary(std::string_view name, double a, double b) {
    if (name == "train.add")
      return a + b;
    if (name == "train.sub")
      return a - b;
    if (name == "train.mul")
      return a * b;
    if (name == "train.div")
      return a / b;
    if (name == "train.max")
      return std::max(a, b);
    if (name == "train.min")
      return std::min(a, b);
    if (name == "train.and")
      return a != 0 && b != 0 ? 1 : 0;
    if (name == "train.equal")
      return a == b ? 1 : 0;
    if (name == "train.less_equal")
      return a <= b ? 1 : 0;
    throw Error("the loss scale of the plan depends on " + std::string(name));
  }

  const proto::Plan &plan_;
  const State &state_;
  std::map<uint32_t, const proto::ReferenceOp *> makers_; // by value
};

void requireEqual(const std::string &what, double has, double wanted, const std::string &when) {
  char text[96];
  std::snprintf(text, sizeof text, " is %.9g in the plan, but %.9g by the configuration", has, wanted);
  if (has != wanted)
    throw Error(what + text + when);
}

double firstOf(const proto::Plan &plan, std::string_view name) {
  for (const proto::Variable &variable : plan.variables())
    if (variable.name() == name)
      return variable.source().fill();
  throw Error("the plan computes in float16, but has no variable " + std::string(name));
}

/// What a step leaves in a variable; what was there if it stores nothing.
double after(const proto::Plan &plan, const State &state, const char *name) {
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (op.function() == "update" && op.op() == "train.store" && plan.variables(int(op.variables(0))).name() == name)
      return Scalars(plan, state).value(op.operands(0));
  return state.variables.at(name);
}

/// DeepSpeed's rule for the state after a step.
State ruled(const State &before, bool overflows, const Fp16 &fp16) {
  State next = before;
  double &scale = next.variables[scaleName], &clean = next.variables[cleanName], &left = next.variables[leftName];
  if (!fp16.isDynamic)
    return next;
  if (overflows) {
    if (left == 1)
      scale = std::max(scale / 2, fp16.least);
    else
      --left;
    clean = 0;
    return next;
  }
  const bool isDue = clean == fp16.window;
  if (fp16.consecutive || isDue)
    left = fp16.hysteresis;
  scale *= isDue ? 2 : 1;
  clean = isDue ? 1 : clean + 1;
  return next;
}

void requireStep(const proto::Plan &plan, const State &state, const Fp16 &fp16) {
  const bool overflows = !std::isfinite(state.norm);
  const State wanted = ruled(state, overflows, fp16);
  char when[160];
  std::snprintf(when, sizeof when, ", after a step %s overflow at scale %.9g, %.0f clean steps, hysteresis %.0f",
                overflows ? "with" : "without", state.variables.at(scaleName), state.variables.at(cleanName),
                state.variables.at(leftName));
  for (const char *name : {scaleName, cleanName, leftName})
    requireEqual(name, after(plan, state, name), wanted.variables.at(name), when);
}

/// The gradient of the loss is multiplied by the scale, by which updates divide (UpdateProgram.cpp).
void requireScaledLoss(const proto::Plan &plan, const State &state) {
  const Scalars scalars(plan, state);
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (op.op() == "train.loss_gradient")
      for (const proto::ReferenceOp &reader : plan.reference().ops())
        if (std::ranges::find(reader.operands(), op.results(0)) != reader.operands().end()) {
          const double wanted = double(float(scalars.value(op.results(0)) * state.variables.at(scaleName)));
          requireEqual("the scaled gradient of the loss", scalars.value(reader.results(0)), wanted, "");
        }
}

} // namespace

std::string requireLossScale(const proto::Plan &plan, const Fp16 &fp16) {
  requireEqual("the first loss scale", firstOf(plan, scaleName), fp16.firstScale, "");
  if (fp16.isDynamic) {
    requireEqual("the first hysteresis", firstOf(plan, leftName), fp16.hysteresis, "");
    requireEqual("the first count of clean steps", firstOf(plan, cleanName), 0, "");
  }
  int states = 0;
  for (const double scale : {fp16.firstScale, 2 * fp16.least, fp16.least})
    for (const double clean : {0.0, 1.0, fp16.window - 1, fp16.window})
      for (const double left : {1.0, 2.0, fp16.hysteresis})
        for (const double norm : {0.0, 3 * scale, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()})
          if (clean <= fp16.window && left <= fp16.hysteresis) {
            const State state{{{scaleName, scale}, {cleanName, clean}, {leftName, left}}, norm};
            requireStep(plan, state, fp16);
            if (std::isfinite(norm))
              requireScaledLoss(plan, state);
            ++states;
          }
  return "the loss is scaled by " + std::string(fp16.isDynamic ? "DeepSpeed's rule, from " : "") +
         std::to_string(int64_t(fp16.firstScale)) + (fp16.isDynamic ? " on" : "") + ", as " + std::to_string(states) +
         " states show";
}

} // namespace ds::sources
