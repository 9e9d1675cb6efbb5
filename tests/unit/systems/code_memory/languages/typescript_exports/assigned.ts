class Whole {}
export = Whole
