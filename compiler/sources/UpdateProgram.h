//===- UpdateProgram.h - whether a plan's update is the configuration's ---===//
#pragma once

#include "compiler/sources/ConfigFile.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

namespace ds::sources {

/// The first group whose pattern a parameter's name matches; null: it is in none.
const Group *groupOf(const ConfigFile &config, const std::string &parameter);

/// That @update of the reference program is the one that the configuration and the trained parameters make, operand by
/// operand, and that the variables it keeps state in are those, no other ones, under their names. The numbers in
/// schedules and updates are left to Settings.cpp. Throws ds::Error.
Claim requireUpdateProgram(const plan::proto::Plan &plan, const ConfigFile &config);

} // namespace ds::sources
