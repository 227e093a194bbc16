/**
 * The messages about words of a command that a program may read as code.
 *
 * @module
 */

export const WORD_IS_CODE =
  "the program reads this word as code, so a call could run anything; pass the argument through standard input, or " +
  "as a separate word after the code";
export const OPTION_HAS_ARGUMENT =
  "an argument is part of an option of a program that reads code, so a call could run anything; give the argument a " +
  "separate word after the code";
export const PROGRAM_HAS_ARGUMENT =
  "this word is the program or the script that runs, which a call may not choose; write its name or path";
export const VARIABLE_LOADS_CODE =
  "the variable can make programs load other code, so a call could run anything; set it to a fixed value";
export const INPUT_IS_CODE =
  "the program reads its standard input as code, so a call could run anything; pass the code to the program in a " +
  "word or a file";
export const ARGUMENT_IS_PARTIAL =
  "an argument is only part of this word; make sure that the program does not read the word as code, or give the " +
  "argument a word of its own";
