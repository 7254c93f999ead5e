/**
 * The kinds of answer. `lists`: a person answers with a list of items. `pads`: the list is cut to a
 * padding and protected as a whole. `alone`: every item is protected on its own.
 */
export const KINDS = Object.freeze({
  single: Object.freeze({ lists: false, pads: false, alone: false }),
  set: Object.freeze({ lists: true, pads: true, alone: false }),
  each: Object.freeze({ lists: true, pads: false, alone: true }),
});
