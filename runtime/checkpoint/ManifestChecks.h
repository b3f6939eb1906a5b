//===- ManifestChecks.h - what must hold between a manifest's fields ------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"

namespace ds::runtime {

/// Throws ds::Error, one sentence that names the variable or file, without the manifest's path.
void checkManifest(const Manifest &manifest);

} // namespace ds::runtime
