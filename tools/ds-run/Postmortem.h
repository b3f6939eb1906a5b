//===- Postmortem.h - ds-run postmortem -----------------------------------===//
#pragma once

#include "tools/ds-run/Arguments.h"

namespace ds::run {

/// Prints who held up a run, by the records of its ranks, and writes the timeline if asked to. Throws ds::Error.
void postmortem(const PostmortemArguments &arguments);

} // namespace ds::run
