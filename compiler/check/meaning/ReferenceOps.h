//===- ReferenceOps.h - small questions about the reference program -------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ds::check {

namespace proto = plan::proto;

/// For sentences.
inline std::string titleOf(const proto::ReferenceOp &op) {
  return op.op() + (op.name().empty() ? "" : " " + op.name());
}

template <typename Message> const proto::Attribute *attributeOf(const Message &message, std::string_view name) {
  for (const proto::Attribute &attribute : message.attributes())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

/// Whether numbers are drawn, by an op or the kernel that runs it: they follow from the micro-batch.
template <typename Message> bool draws(const Message &message) { return attributeOf(message, "op_id"); }

/// Whether a micro-batch stores what it makes of a buffer, for the next one.
inline bool isCarried(const proto::Plan &plan, const proto::ReferenceOp &op) {
  return op.op() == "train.store" && op.function() == "microbatch" &&
         plan.variables(int(op.variables(0))).kind() == proto::Variable::BUFFER;
}

/// Elements of each partial sum of a norm, where the op does not say another number.
inline constexpr int64_t wholeBlock = 1024;

} // namespace ds::check
