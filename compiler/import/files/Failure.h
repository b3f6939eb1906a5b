//===- Failure.h - how the importer's parts refuse -------------------------===//
#pragma once

#include "core/Error.h"

namespace ds::import {

/// A refusal on its way to importModel, which turns it into a diagnostic. No MLIR frame lies in between.
using Failure = ds::Error;

} // namespace ds::import
