"""Laws that everything of a kind obeys; use them on your own plans, learners, completers and stores.

::

    from entrywise.checks import plans

    @pytest.mark.parametrize("law", plans.LAWS)
    def test_my_plan(law):
        law(my_plan(...), make_oracle)
"""
