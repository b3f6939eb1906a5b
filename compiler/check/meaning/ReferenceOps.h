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

/// Elements of each partial sum of a norm, where the op does not say another number.
inline constexpr int64_t wholeBlock = 1024;

} // namespace ds::check
