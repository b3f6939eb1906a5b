//===- SetValues.cpp - --set: what a run may change of its plan -----------===//
#include "runtime/session/SetValues.h"

#include "core/Error.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/plan/plan.pb.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ds::runtime {
namespace {

using plan::proto::Attribute;

/// A key of the configuration, and the attribute of the kernel that has its value (no name: of any that has it).
struct Setting {
  enum class Kind : uint8_t { Rate, Positive, Momentum, Steps };

  const char *key, *kernel, *attribute;
  Kind kind;
};

constexpr Setting settings[] = {
    {"optimizer.params.lr", "learning_rate", "lr", Setting::Kind::Rate},
    {"gradient_clipping", "clip_factor", "max_norm", Setting::Kind::Positive},
    {"scheduler.params.warmup_min_lr", "learning_rate", "warmup_min_lr", Setting::Kind::Rate},
    {"scheduler.params.warmup_max_lr", "learning_rate", "warmup_max_lr", Setting::Kind::Rate},
    {"scheduler.params.warmup_min_ratio", "learning_rate", "warmup_min_ratio", Setting::Kind::Rate},
    {"scheduler.params.cos_min_ratio", "learning_rate", "cos_min_ratio", Setting::Kind::Rate},
    {"scheduler.params.warmup_num_steps", "learning_rate", "warmup_num_steps", Setting::Kind::Steps},
    {"scheduler.params.total_num_steps", "learning_rate", "total_num_steps", Setting::Kind::Steps},
    {"scheduler.params.lr_range_test_min_lr", "learning_rate", "lr_range_test_min_lr", Setting::Kind::Rate},
    {"scheduler.params.lr_range_test_step_rate", "learning_rate", "lr_range_test_step_rate", Setting::Kind::Rate},
    {"scheduler.params.lr_range_test_step_size", "learning_rate", "lr_range_test_step_size", Setting::Kind::Steps},
    {"scheduler.params.cycle_min_lr", "learning_rate", "cycle_min_lr", Setting::Kind::Rate},
    {"scheduler.params.cycle_max_lr", "learning_rate", "cycle_max_lr", Setting::Kind::Rate},
    {"scheduler.params.decay_lr_rate", "learning_rate", "decay_lr_rate", Setting::Kind::Rate},
    {"scheduler.params.cycle_min_mom", "cycled_momentum", "cycle_min_mom", Setting::Kind::Momentum},
    {"scheduler.params.cycle_max_mom", "cycled_momentum", "cycle_max_mom", Setting::Kind::Momentum},
    {"scheduler.params.decay_mom_rate", "cycled_momentum", "decay_mom_rate", Setting::Kind::Rate},
    {"scheduler.params.cycle_first_step_size", "", "cycle_first_step_size", Setting::Kind::Steps},
    {"scheduler.params.cycle_second_step_size", "", "cycle_second_step_size", Setting::Kind::Steps},
    {"scheduler.params.decay_step_size", "", "decay_step_size", Setting::Kind::Steps},
};

const Setting &settingOf(const std::string &key) {
  std::string keys;
  for (const Setting &setting : settings) {
    if (key == setting.key)
      return setting;
    keys += (keys.empty() ? "" : ", ") + std::string(setting.key);
  }
  throw Error("--set " + key + " is no value that a run can change; these are: " + keys +
              "; for all else compile the plan again");
}

template <typename T> bool isNumber(const std::string &text, T &number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

void change(Attribute &attribute, const Setting &setting, const std::string &value) {
  double number = 0;
  int64_t steps = 0;
  if (setting.kind == Setting::Kind::Steps) {
    if (!isNumber(value, steps) || steps < 1)
      throw Error("--set " + std::string(setting.key) + "=" + value + " is not a number of steps from 1 on");
    attribute.set_integer(steps);
    return;
  }
  const bool positive = setting.kind == Setting::Kind::Positive;
  if (!isNumber(value, number) || !std::isfinite(number) || number < 0 || (positive && number == 0))
    throw Error("--set " + std::string(setting.key) + "=" + value + " is not a number " +
                (positive ? "above 0; without clipping it is another plan" : "of at least 0"));
  if (setting.kind == Setting::Kind::Momentum && number >= 1)
    throw Error("--set " + std::string(setting.key) + "=" + value + " is not a number below 1");
  attribute.set_number(number);
}

uint64_t changeAll(plan::proto::Plan &plan, const Setting &setting, const std::string &value) {
  uint64_t changed = 0;
  for (plan::proto::Role &role : *plan.mutable_roles())
    for (plan::proto::Routine &routine : *role.mutable_routines())
      for (plan::proto::Command &command : *routine.mutable_commands()) {
        if (!command.has_kernel() || (*setting.kernel != 0 && command.kernel().kernel() != setting.kernel))
          continue;
        for (Attribute &attribute : *command.mutable_kernel()->mutable_attributes())
          if (attribute.name() == setting.attribute) {
            change(attribute, setting, value);
            ++changed;
          }
      }
  return changed;
}

} // namespace

std::vector<Manifest::Change> parseSettings(std::span<const std::string> flags, uint64_t stepsDone) {
  std::vector<Manifest::Change> changes;
  for (const std::string &flag : flags) {
    const size_t equals = flag.find('=');
    if (equals == std::string::npos)
      throw Error("--set " + flag + " has no value; it is --set key.path=value", "--set optimizer.params.lr=0.001");
    const std::string value = flag.substr(equals + 1);
    (void)settingOf(flag.substr(0, equals));
    if (double number = 0; !isNumber(value, number) || !std::isfinite(number))
      throw Error("--set " + flag + ": " + value + " is no number");
    changes.push_back({stepsDone, flag.substr(0, equals), value});
  }
  return changes;
}

void applySettings(plan::proto::Plan &plan, std::span<const Manifest::Change> changes) {
  for (const Manifest::Change &one : changes)
    if (changeAll(plan, settingOf(one.key), one.value) == 0)
      throw Error("--set " + one.key + " has nothing to change: the plan does not use it; compile it again with it");
}

} // namespace ds::runtime
