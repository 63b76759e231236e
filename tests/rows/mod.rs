//! Each row of the tables, exercised by a program.
