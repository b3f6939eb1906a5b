//===- FieldEdits.h - edits of any field of any message of a plan ---------===//
//
// Not defects that somebody thought of: whatever plan.proto's descriptor has is changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "test/mutation/Edit.h"

#include <map>
#include <string>
#include <vector>

namespace ds::mutation {

/// What a field is to a user of the plan.
enum class FieldClass {
  Proved,    ///< an edit that changes what is trained is refused by the checker
  ForPeople, ///< nothing is executed by it
  Trusted,   ///< the checker takes the plan's word; `why` says who compares it
};

struct FieldUse {
  FieldClass fieldClass = FieldClass::Proved;
  std::string why; ///< of what is not proved
};

/// "Operand.byte_offset" -> what it is to a user. Of fields that are not listed: proved.
FieldUse useOf(const std::string &field);

/// Every "Message.field" that plan.proto has.
std::vector<std::string> allFields();

struct FieldEdit {
  std::string field; ///< "Operand.byte_offset"
  std::string what;  ///< "+1", "cleared", "that of another", ...
};

/// Changes one field that is there, each as likely as any other whatever the number of its places.
FieldEdit editField(proto::Plan &plan, Random &random);

/// The same of one field. An empty `what` where no place of it can be changed.
FieldEdit editField(proto::Plan &plan, const std::string &field, Random &random);

} // namespace ds::mutation
