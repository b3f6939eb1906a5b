//===- Zoo.h - what is known to train -------------------------------------===//
#pragma once

#include "compiler/report/Report.h"

#include <string>

namespace ds::report {

/// What `ds-opt zoo` prints: models/zoo.json, which test/e2e/architectures.py writes, as it is or as a table.
std::string zooReport(Format format);

} // namespace ds::report
