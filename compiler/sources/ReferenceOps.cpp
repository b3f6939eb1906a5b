//===- ReferenceOps.cpp - looking things up in a plan's reference program -===//
#include "compiler/sources/ReferenceOps.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ds::sources {

namespace proto = plan::proto;

const proto::Attribute *attributeOf(const proto::ReferenceOp &op, std::string_view name) {
  const auto found =
      std::ranges::find_if(op.attributes(), [&](const proto::Attribute &one) { return one.name() == name; });
  return found == op.attributes().end() ? nullptr : &*found;
}

double numberOf(const proto::ReferenceOp &op, std::string_view name) {
  const proto::Attribute *attribute = attributeOf(op, name);
  if (attribute == nullptr)
    return 0;
  return attribute->value_case() == proto::Attribute::kInteger ? double(attribute->integer()) : attribute->number();
}

std::string textOf(const proto::ReferenceOp &op, std::string_view name) {
  const proto::Attribute *attribute = attributeOf(op, name);
  return attribute == nullptr ? "" : attribute->text();
}

std::vector<const proto::ReferenceOp *> opsOf(const proto::Plan &plan, std::string_view name) {
  std::vector<const proto::ReferenceOp *> ops;
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (op.op() == name)
      ops.push_back(&op);
  return ops;
}

const proto::ReferenceOp *makerOf(const proto::Plan &plan, uint32_t value) {
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (std::ranges::find(op.results(), value) != op.results().end())
      return &op;
  return nullptr;
}

} // namespace ds::sources
