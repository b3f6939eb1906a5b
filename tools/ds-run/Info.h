//===- Info.h - ds-run info -----------------------------------------------===//
#pragma once

namespace ds::run {

/// Prints devices, libraries and versions to stdout. Cf. ds_report.
void printInfo();

} // namespace ds::run
