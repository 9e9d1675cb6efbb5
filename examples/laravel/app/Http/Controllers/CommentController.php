<?php

namespace App\Http\Controllers;

use App\Models\Comment;
use Illuminate\Database\Eloquent\Relations\Relation;
use Illuminate\Http\Request;
use Illuminate\Support\Str;

class CommentController extends Controller
{
    public function store(Request $request, string $commentable, int $id)
    {
        $class = Relation::getMorphedModel(Str::singular($commentable));
        $class::findOrFail($id)->comments()->create($request->validate(['body' => 'required|string']));

        return back();
    }

    public function destroy(Comment $comment)
    {
        $this->authorize('delete', $comment);
        $comment->delete();

        return back();
    }
}
