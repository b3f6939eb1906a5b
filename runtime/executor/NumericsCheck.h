//===- NumericsCheck.h - --check-numerics ---------------------------------===//
#pragma once

#include "runtime/executor/Command.h"

#include <memory>
#include <string>

namespace ds::runtime {

/// A task that runs `inner`, the command's kernel, and then fails if a float element that it wrote is NaN or infinite,
/// naming op, value and index. Cf. torch.autograd.set_detect_anomaly.
std::unique_ptr<Task> checkNumerics(const CommandContext &context, const plan::proto::Command &command,
                                    const std::string &where, Task &inner);

} // namespace ds::runtime
