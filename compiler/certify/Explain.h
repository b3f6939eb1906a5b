//===- Explain.h - what a rule or a claim means ---------------------------===//
#pragma once

#include <string>

namespace ds::certify {

/// Some lines about a rule of the checker or a claim of a certificate, by its id: what holds, why it matters, an
/// example of what is refused and what to do then. Throws ds::Error that lists the ids for one that there is not.
std::string explain(const std::string &id);

} // namespace ds::certify
