//===- MatchWeights.h - parameters that an exporter renamed, found by content --===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/Weights.h"
#include "compiler/import/files/Metadata.h"
#include "compiler/import/files/WireScan.h"

#include <set>
#include <string>

namespace ds::import {

/// torch.onnx.export's optimizer renames, transposes, merges and folds parameters. Each use of an initializer says in
/// its node's metadata which parameters the call had; the one whose values in the safetensors files the initializer
/// holds (as they are, in another shape, transposed, repeated, or a run of its rows) is what the node reads from here
/// on. Without metadata the values alone decide. Biases of zeros that were left out come back. Returns what people
/// should know, or nothing where nothing had to be matched. Throws Failure where a parameter cannot be found, or values
/// fit several.
std::string matchWeights(const ScannedModel &model, FlatGraph &graph, Metadata &metadata, WeightFiles &files,
                         const std::string &weights);

/// Makes one parameter again of a table that is looked up and of its transposed copy, which the constant folding of an
/// exporter leaves where a head is tied to an embedding. Returns the tables.
std::set<std::string> joinTransposedCopies(const ScannedModel &model, FlatGraph &graph, WeightFiles &files);

} // namespace ds::import
