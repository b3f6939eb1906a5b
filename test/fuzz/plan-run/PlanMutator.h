//===- PlanMutator.h - one change to a message ----------------------------===//
#pragma once

#include <cstdint>
#include <google/protobuf/message.h>
#include <random>

namespace ds::fuzz {

/// Changes one field of the message or of one within it: a number becomes a near one, or what the same field holds
/// elsewhere in the message; an element of a list goes, comes twice, or changes place; a part goes or becomes a copy of
/// another like it. So most changes of a plan are still plans, which no change of its bytes is.
void mutate(google::protobuf::Message &message, std::minstd_rand &random);

} // namespace ds::fuzz
