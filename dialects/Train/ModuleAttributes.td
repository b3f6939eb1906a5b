//===- ModuleAttributes.td - what passes say of a whole program -----------===//
#ifndef DS_TRAIN_MODULE_ATTRIBUTES_TD
#define DS_TRAIN_MODULE_ATTRIBUTES_TD

include "dialects/Train/TrainDialect.td"

def Train_Numerics : I32EnumAttr<"Numerics", "how results compare with those of one rank", [
    I32EnumAttrCase<"BitEqual", 0, "bit_equal">,
    I32EnumAttrCase<"Reassociated", 1, "reassociated">,
    I32EnumAttrCase<"Lossy", 2, "lossy">]> {
  let cppNamespace = "::ds::train";
  let genSpecializedAttr = 0;
}
def Train_NumericsAttr : EnumAttr<Train_Dialect, Train_Numerics, "numerics"> {
  let summary = "how a program's results compare with those of one rank";
  let description = [{
    `bit_equal`: the same bits. `reassociated`: some sum has another order. `lossy`: some value is rounded that one rank would not
    round, or gradients are summed in 16 bits. A module without `train.numerics` is bit_equal; the pass that makes the change raises it, none lowers it.

    ```mlir
    module attributes {train.numerics = #train.numerics<reassociated>} {
    }
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Train_RecomputeSummary : AttrDef<Train_Dialect, "RecomputeSummary"> {
  let mnemonic = "recompute_summary";
  let summary = "what ds-choose-recompute has chosen";
  let description = [{
    `level` of the levels that there are, and the `layers` in which something is computed again, of those in which something could be.

    ```mlir
    module attributes {train.recompute_summary = #train.recompute_summary<level 2 of 6, layers 2 of 3>} {
    }
    ```
  }];
  let parameters = (ins "int64_t":$level, "int64_t":$levels, "int64_t":$layersAgain, "int64_t":$layers);
  let assemblyFormat = "`<` `level` $level `of` $levels `,` `layers` $layersAgain `of` $layers `>`";
}

#endif // DS_TRAIN_MODULE_ATTRIBUTES_TD
